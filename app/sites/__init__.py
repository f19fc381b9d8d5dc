"""A site or its rules tried on pages: saved, live, rendered."""
