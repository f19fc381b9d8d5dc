"""The command line: one module a group of commands (`main` is the entry)."""
