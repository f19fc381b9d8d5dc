"""Commands by which people steer: nodes, failed subtasks, schedules, alerts."""
