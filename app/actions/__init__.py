"""What commands, dashboard and API do alike to products, failed tasks and schedules."""
