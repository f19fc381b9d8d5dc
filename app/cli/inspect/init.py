"""`reviewloop init`: make a working folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from app.cli.command import App, command
from app.cli.options import FOLDER, chosen_sites, group_option, site_option
from app.cli.program import as_called
from app.cli.render import Part, text
from app.run.new_folder import Written, make_folder
from app.views.words import translate
from splitter.catalog.load import builtin


@dataclass(frozen=True, slots=True)
class FolderView:
    """The files of a new working folder."""

    files: Sequence[Written]


@command(None, "init", db=False)
@click.argument("folder", type=FOLDER, default=Path())
@group_option
@site_option
def init(_app: App, folder: Path, groups: tuple[str, ...], sites_named: tuple[str, ...]) -> FolderView:
    """Make a FOLDER to work in, with settings, a catalog, compose files and a table of products.

    Default: this folder. Existing files stay as they are. Every command that runs in the folder reads its
    `.env` and its `sites.yaml`. There, `docker compose up -d` starts a whole cluster, `docker compose up
    -d searxng` only the search engine that most sites need.

    \b
    Examples:
      reviewloop init reviews
      reviewloop init reviews --group complaints --group forum
    """
    return FolderView(make_folder(folder, chosen_sites(builtin("today"), groups, sites_named)))


@text.register
def _(view: FolderView) -> Iterator[Part]:
    for one in view.files:
        made = translate("made {path}", path=one.path)
        yield made if one.made else translate("there {path}", path=one.path)
    folder = view.files[0].path.parent
    yield "\n" + translate("Next:")
    if folder != Path():
        yield f"  cd {folder}"
    for line in (
        translate("write REVIEWLOOP_CONTACT into .env, and your products into names.csv"),
        translate("docker compose up -d searxng             most sites are asked through it"),
        translate("reviewloop doctor                        what is missing"),
        "reviewloop product import names.csv",
        translate("reviewloop run --plan                    what will be asked, and how long"),
        "reviewloop run --until-done",
    ):
        yield f"  {as_called(line, from_anywhere=folder != Path())}"
