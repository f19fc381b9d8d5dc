"""Actions on products, failed tasks and schedules, shared by commands, dashboard and API."""
