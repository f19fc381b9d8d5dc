"""Run the command line as ``python -m app``, without the script `reviewloop`."""

from app.cli.main import main

main()
