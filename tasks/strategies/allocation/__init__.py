"""Allocation strategies: which node gets a waiting subtask. One a file."""
