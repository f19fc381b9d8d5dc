"""Themes over time: what buyers complain about, since when, and what rises. Knows nothing of the crawl."""
