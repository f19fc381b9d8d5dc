"""Commands that crawl: run, up, demo, lab."""
