"""The command line: one module a group of commands; `main` turns errors into exit statuses."""

from __future__ import annotations

import sys
from importlib import import_module

import click

from splitter.errors import InputError, ReviewloopError

_COMMANDS = {
    "split": ("split", "split_command"),
    "product": ("product", "product"),
    "run": ("run", "run"),
    "up": ("up", "up"),
    "demo": ("demo", "demo"),
    "lab": ("lab", "lab"),
    "status": ("status", "status"),
    "nodes": ("nodes", "nodes"),
    "control": ("control", "control"),
    "explain": ("explain", "explain"),
    "schedule": ("status", "schedule"),
    "sites": ("sites", "sites"),
    "failed": ("failed", "failed"),
    "export": ("export", "export"),
    "verify": ("verify", "verify"),
    "balance": ("balance", "balance"),
    "simulate": ("simulate", "simulate"),
    "bench": ("bench", "bench"),
}
"""Name of a command: its module here and its function there."""


class Commands(click.Group):
    """Commands imported when they are asked for (each brings its own libraries), with our errors as exit statuses."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """In the order of the work, not of the alphabet."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command of that name."""
        if cmd_name not in _COMMANDS:
            return None
        module, function = _COMMANDS[cmd_name]
        command: click.Command = getattr(import_module(f"app.cli.{module}"), function)
        return command

    def invoke(self, ctx: click.Context) -> object:
        """Run; what the input is to blame for ends with 2, what failed with 1."""
        try:
            return super().invoke(ctx)
        except InputError as error:
            _tell(error)
            ctx.exit(2)
        except ReviewloopError as error:
            _tell(error)
            ctx.exit(1)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-v", "--verbose", is_flag=True, help="Tell more on standard error.")
@click.version_option(package_name="reviewloop", message="%(prog)s %(version)s")
def cli(verbose: bool) -> None:
    """Collect product reviews and complaints from many sites through many crawl nodes.

    \b
    Try it:
      reviewloop demo                              the whole loop on a local web, in a minute
      reviewloop split 光明高钙牛奶                what would be asked, and where
      reviewloop run --until-done 光明高钙牛奶     collect its reviews
      reviewloop export reviews -o reviews.csv     take them along

    Every command takes --json. Exit status: 0 done, 1 the work failed, 2 the input was wrong.
    """
    from app.cli.output import set_up_logging

    set_up_logging(verbose)


def main() -> None:
    """Entry point. Exit status: 0 done, 1 the work failed, 2 the input was wrong."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character must not end the command.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    cli.main()


def _tell(error: ReviewloopError) -> None:
    click.echo(f"reviewloop: {error}", err=True)
