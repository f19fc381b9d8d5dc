"""Reviews that people already have, read from their files."""
