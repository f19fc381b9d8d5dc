"""Make a working folder that contains settings, a catalog, docker-compose.yml and a table of products."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import yaml

from app.run.setting_fields import env_file
from splitter.catalog.load import builtin_text
from splitter.errors import InputError, system_reason

_NAMES = "\ufeffname,keywords,aliases,priority,recrawl\n"
"""The header of the table of products. Excel reads it as UTF-8 because of the mark."""
_OWNER_ONLY = 0o600
_FOR_ALL = 0o644


@dataclass(frozen=True, slots=True)
class Written:
    """A file of the working folder. `made` is False if the file existed before and was left unchanged."""

    path: Path
    made: bool


def make_folder(folder: Path, sites: Sequence[str] | None) -> list[Written]:
    """Make the working folder and its files. Existing files stay as they are.

    Args:
        sites: domains of the catalog's sites to use; `None` for all.

    Raises:
        InputError: the folder or a file can't be made.
    """
    wanted = {
        ".env": (_settings(), _OWNER_ONLY),
        "sites.yaml": (_catalog(sites), _FOR_ALL),
        "docker-compose.yml": (_compose_file(), _FOR_ALL),
        "names.csv": (_NAMES, _FOR_ALL),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return [Written(folder / name, _write(folder / name, *of)) for name, of in wanted.items()]
    except OSError as error:
        raise InputError(
            "{path}: {reason}", path=error.filename or folder, reason=system_reason(error)
        ) from None


def _compose_file() -> str:
    """Return the project's docker-compose.yml for a folder that has no source code to build the image from."""
    text = files("app.run").joinpath("docker-compose.yml").read_text("utf-8")
    return text.replace("  build: .\n", "  pull_policy: never\n")


def _write(path: Path, text: str, mode: int) -> bool:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError:
        return False
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    return True


def _settings() -> str:
    return (
        "# Settings of reviewloop, read by every command that runs in this folder.\n"
        "# Variables of the environment come first.\n"
        "# A line that begins with # is the default.\n\n"
        "# Who asks: sites read it in the User-Agent. Write an address or page where they can reach you.\n"
        "REVIEWLOOP_CONTACT=\n\n"
        "# Made at random. Whoever has the first reads your sign-ins; with another second one pseudonyms change.\n"
        f"REVIEWLOOP_SECRET_KEY={secrets.token_hex(24)}\n"
        f"REVIEWLOOP_PSEUDONYM_KEY={secrets.token_hex(24)}\n"
        "# Of the containers of docker-compose.yml; a database that is there already keeps its first password.\n"
        f"POSTGRES_PASSWORD={secrets.token_hex(24)}\n"
        f"REDIS_PASSWORD={secrets.token_hex(24)}\n"
        f"SEARXNG_SECRET={secrets.token_hex(24)}\n"
        "\n# Of sites that ask to sign in (docs/sign-in.md): REVIEWLOOP_LOGIN_WEIBO_COOKIES=...\n\n"
        f"{env_file(without=('contact', 'secret_key', 'pseudonym_key'))}"
    )


def _catalog(sites: Sequence[str] | None) -> str:
    """Return the text of the built-in catalog. With `sites`, it has only these sites and no comments."""
    text = builtin_text("today")
    if sites is None:
        return text
    catalog = yaml.safe_load(text)
    catalog["sites"] = {name: catalog["sites"][name] for name in sites}
    kept = {site["engine"] for site in catalog["sites"].values()}
    catalog["engines"] = {name: engine for name, engine in catalog["engines"].items() if name in kept}
    rules = {site["rules"] for site in catalog["sites"].values()}
    catalog["rules"] = {name: rule for name, rule in catalog["rules"].items() if name in rules}
    head = f"# {len(sites)} sites of reviewloop's catalog; each key is described in docs/sites-yaml.md.\n"
    return head + yaml.dump(catalog, Dumper=_Plain, allow_unicode=True, sort_keys=False, width=110)


class _Plain(yaml.SafeDumper):
    """Writes YAML without anchors: a value that several entries share is repeated."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002
        """Return True, so that no anchor is written."""
        return True
