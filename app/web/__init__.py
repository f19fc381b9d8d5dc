"""The dashboard, its API and its metrics: pages made on the server, for people who operate the loop."""
