"""Commands that show and check: status, explain, sites, doctor, web."""
