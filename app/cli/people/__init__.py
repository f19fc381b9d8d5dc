"""Commands for operators: nodes, failed subtasks, schedules, alerts."""
