"""Themes over time: what buyers complain about, since when, and what rises. It does not depend on the crawl."""
