"""The entry point of the command line. `main` turns errors into exit statuses."""

from __future__ import annotations

import ast
import errno
import gettext
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click

from app.cli.help_texts import HelpFormatter, translate_help
from app.cli.program import GROUPS, as_called, program
from app.run.process import collect_seldom
from app.run.version import VERSION
from app.views.words import DOMAIN, FOLDER, describe, language, translate, use_language
from splitter.errors import InputError, ReviewloopError, system_reason

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

RESEARCH = {
    "simulate": "Run SCENARIO files in virtual time and compare with a proven bound.",
    "bench": "Measure one subject side by side.",
    "chaos": "Kill and cut off parts of a real cluster, and prove that nothing is lost.",
}
"""Short help of the commands of the distribution `reviewloop-research`, by name."""

_MODULES = {
    **dict.fromkeys(("up", "run"), "crawl.run"),
    **{"control": "people.pairs"},
    **{name: f"products.{name}" for name in ("product", "review", "split", "export")},
    **{name: f"crawl.{name}" for name in ("demo", "lab")},
    **{name: f"people.{name}" for name in ("failed", "nodes", "schedule", "alerts")},
}
"""Modules of commands below `app.cli`. A command that is not listed is in the module of its name in `inspect`."""


_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)


class Commands(click.Group):
    """A group that imports a command only when it is called, and turns errors of this program into exit statuses."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names of the commands, ordered as in the help."""
        return [name for names in GROUPS.values() for name in names]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of this name, or `None`."""
        if cmd_name not in self.list_commands(ctx):
            return None
        if cmd_name in RESEARCH:
            return translate_help(_research_command(cmd_name))
        command: click.Command = getattr(import_module(f"app.cli.{_module(cmd_name)}"), cmd_name)
        return translate_help(command)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that `args` name.

        If it is unknown, suggest similar names, including commands not yet imported.
        """
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as error:
            raise click.exceptions.NoSuchCommand(
                error.command_name, possibilities=self.list_commands(ctx), ctx=ctx
            ) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands under the headings of their groups."""
        widest = max(map(len, self.list_commands(ctx)))
        for heading, names in GROUPS.items():
            room = formatter.width - widest - 6
            with formatter.section(translate(heading)):
                formatter.write_dl([(name.ljust(widest), _short_help(name, room)) for name in names])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Set the language of the environment, because `--help` prints at once. Then parse the options."""
        speak(ctx, None)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command. Exit with status 2 for wrong input, with 1 if the work failed."""
        try:
            return super().invoke(ctx)
        except click.NoSuchOption as error:
            if error.option_name != "--lang":
                raise
            raise click.UsageError(
                translate(
                    "--lang goes before the command: reviewloop --lang zh {command}",
                    command=ctx.invoked_subcommand,
                ),
                error.ctx,
            ) from None
        except ReviewloopError as error:
            click.echo(f"reviewloop: {as_called(describe(error))}", err=True)
            ctx.exit(2 if isinstance(error, InputError) else 1)
        except OSError as error:
            if error.filename is None and error.errno not in _NO_ROOM:
                raise
            where = f"{error.filename}: " if error.filename is not None else ""
            click.echo(f"reviewloop: {where}{describe(system_reason(error))}", err=True)
            ctx.exit(1)


def _module(command: str) -> str:
    return _MODULES.get(command, f"inspect.{command}")


def _find_entry_points(name: str) -> Sequence[EntryPoint]:
    from importlib.metadata import entry_points  # it takes longer to import than click

    return tuple(entry_points(group="reviewloop.commands", name=name))


def _research_command(name: str) -> click.Command:
    found = _find_entry_points(name)
    if not found:
        raise InputError(
            "{name} is not installed: pip install ./research (or reviewloop-research)", name=name
        )
    command: click.Command = found[0].load()
    return command


def _short_help(command: str, room: int) -> str:
    """Return the first sentence of a command's help, at most `room` characters.

    It is read from the source text, because importing all commands takes seconds.
    """
    if command in RESEARCH:
        missing = "" if _find_entry_points(command) else translate("(not installed) ")
        return missing + translate_help(click.Command(command, help=RESEARCH[command])).get_short_help_str(
            room
        )
    module = Path(__file__).parent.joinpath(*_module(command).split("."))
    source = module.with_suffix(".py").read_text("utf-8")
    functions = (node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef))
    about = next(ast.get_docstring(one) or "" for one in functions if one.name == command)
    return translate_help(click.Command(command, help=about)).get_short_help_str(room)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "-v", "--verbose", is_flag=True, help="Log more on standard error, and in the processes of `up`."
)
@click.option(
    "--lang",
    metavar="zh|en",
    is_eager=True,
    expose_value=False,
    callback=lambda ctx, _, code: speak(ctx, code) if code else None,
    help="Language of texts. Default: REVIEWLOOP_LANG, else LC_ALL, else LANG, else en.",
)
@click.version_option(VERSION, prog_name="reviewloop", message="%(prog)s %(version)s")
def cli(verbose: bool) -> None:
    """Collect product reviews and complaints from many sites through many crawl nodes.

    \b
    Try it:
      reviewloop demo                            the whole loop on a local web
      reviewloop split 光明高钙牛奶              its keywords and search URLs
      reviewloop run --until-done 光明高钙牛奶   collect its reviews
      reviewloop export reviews -o reviews.csv   write them to a file

    Every command takes --json. Exit status: 0 done, 1 the work failed, 2 the input was wrong.
    """
    from app.cli.output import set_up_logging
    from app.run.settings import logging_wanted

    level, form = logging_wanted()
    set_up_logging(verbose or level == "info", as_json=form == "json")


def speak(context: click.Context, code: str | None) -> None:
    """Set the language of all texts that a person reads, including those of the library click.

    Args:
        code: code of the language; `None` for the language of the environment.
    """
    from app.run.settings import language_wanted, tell_gettext

    try:
        use_language(code or language_wanted())
    except InputError as error:
        raise click.BadParameter(
            describe(error), param_hint="--lang" if code else "REVIEWLOOP_LANG"
        ) from None
    gettext.bindtextdomain(DOMAIN, FOLDER)
    gettext.textdomain(DOMAIN)
    tell_gettext(language())
    click.types.IntParamType.name, click.types.IntRange.name = (
        translate("integer"),
        translate("integer range"),
    )
    click.types.FloatParamType.name, click.types.FloatRange.name = (
        translate("float"),
        translate("float range"),
    )
    translate_help(context.command)
    help_option = context.command.get_help_option(context)
    if help_option is not None:  # made before the language was known
        help_option.help = translate("Show this message and exit.")


class _Terminated(BaseException):
    """SIGTERM came."""


def _terminate(*_: object) -> None:
    """End the command in order. A second SIGTERM ends it at once."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    raise _Terminated


def main() -> None:
    """Run the command that the command line names. Exit status: 0 done, 1 the work failed, 2 the input was wrong."""
    if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminate)
    collect_seldom()
    for stream in (sys.stdout, sys.stderr):
        # A character that the terminal can't show must not end the command.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    click.Context.formatter_class = HelpFormatter
    try:
        cli.main(prog_name=program())
    except _Terminated:  # temporary files are removed
        os.kill(os.getpid(), signal.SIGTERM)
