"""The pages of the dashboard: one module a page."""
