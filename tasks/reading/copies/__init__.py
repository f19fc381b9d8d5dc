"""Decide which reviews are copies: equal and nearly equal texts, their authors, and how long a text must be."""
