"""Judge themes of complaints over time: what buyers complain about, since when, and what rises. Needs no crawl."""
