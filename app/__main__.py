"""``python -m app``: the command line without its script."""

from app.cli.main import main

main()
