"""Try sites and their rules on pages."""
