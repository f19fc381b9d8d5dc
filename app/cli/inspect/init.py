"""`reviewloop init`: a folder to work in."""

from __future__ import annotations

from pathlib import Path

import click

from app.cli.options import FOLDER, chosen_sites, group_option, json_option, site_option
from app.cli.output import print_json, printed
from app.cli.program import as_called
from app.run.new_folder import make_folder
from splitter.catalog.load import builtin


@click.command()
@click.argument("folder", type=FOLDER, default=Path())
@group_option
@site_option
@json_option
def init(folder: Path, groups: tuple[str, ...], sites_named: tuple[str, ...], as_json: bool) -> None:
    """Make a FOLDER to work in, with settings, a catalog, compose files and a table of products.

    Default: this folder. Existing files stay as they are. Every command that runs in the folder reads its
    `.env` and its `sites.yaml`. There, `docker compose up -d` starts a whole cluster, `docker compose up
    -d searxng` only the search engine that most sites need.

    \b
    Examples:
      reviewloop init reviews
      reviewloop init reviews --group complaints --group forum
    """
    written = make_folder(folder, chosen_sites(builtin("today"), groups, sites_named))
    if as_json:
        print_json({"files": written})
        return
    out = printed()
    for one in written:
        out.print(f"{'made ' if one.made else 'there'}  {one.path}")
    out.print("\nNext:")
    if folder != Path():
        out.print(f"  cd {folder}")
    for line in (
        "write REVIEWLOOP_CONTACT into .env, and your products into names.csv",
        "docker compose up -d searxng             most sites are asked through it",
        "reviewloop doctor                        what is missing",
        "reviewloop product import names.csv",
        "reviewloop run --plan                    what will be asked, and how long",
        "reviewloop run --until-done",
    ):
        out.print(f"  {as_called(line, from_anywhere=folder != Path())}")
