"""The command line: one module a group of commands; `main` turns errors into exit statuses."""

from __future__ import annotations

import sys

import click

from app.cli.lab import lab
from app.cli.split import split_command
from splitter.errors import InputError, ReviewloopError


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="reviewloop", message="%(prog)s %(version)s")
def cli() -> None:
    """Collect product reviews and complaints from many sites through many crawl nodes."""


for command in (split_command, lab):
    cli.add_command(command)


def main() -> None:
    """Entry point. Exit status: 0 done, 1 the work failed, 2 the input was wrong."""
    try:
        cli.main(standalone_mode=True)
    except InputError as error:
        click.echo(f"reviewloop: {error}", err=True)
        sys.exit(2)
    except ReviewloopError as error:
        click.echo(f"reviewloop: {error}", err=True)
        sys.exit(1)
