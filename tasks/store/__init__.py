"""The store: tables, and every SQL statement of the project."""
