"""Actions on products, failed tasks and schedules. Commands, the dashboard and the API share them."""
