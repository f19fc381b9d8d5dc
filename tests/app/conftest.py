"""What the command line's tests share: a tiny catalog, a lab that serves it, and a store that was crawled once."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from click.testing import CliRunner, Result
from patience import PATIENCE_S
from tiny_world import DEAD, PRODUCTS, REFUSED, ROOT, SITES

from app.cli.main import cli
from app.lab.profile import PairConduct, Profile, RobotsProfile
from app.lab.running import running_lab
from app.lab.server import Lab
from splitter.catalog.load import load_catalog

# No site may set up a wait of its own: limits are tested elsewhere.
_FAST = {"per_address_per_s": 500, "total_per_s": 5000}
_HURRY = {
    "REVIEWLOOP_BACKOFF_S": "0.02",
    "REVIEWLOOP_REST_FACTOR": "0.01",
    "REVIEWLOOP_MOST_UNANSWERED": "4",
}


@pytest.fixture(scope="session")
def tiny_sites(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A catalog of five sites of the built-in one, without limits to speak of."""
    data = yaml.safe_load((ROOT / "splitter" / "data" / "paper-2014.yaml").read_text("utf-8"))
    data |= {"name": "tiny", "limits": _FAST, "sites": {name: data["sites"][name] for name in SITES}}
    for engine in data["engines"].values():
        engine["limits"] = _FAST
    path = tmp_path_factory.mktemp("catalog") / "tiny.yaml"
    path.write_text(yaml.safe_dump(data, allow_unicode=True, sort_keys=False), "utf-8")
    return path


@pytest.fixture(scope="session")
def lab(tiny_sites: Path) -> Iterator[Lab]:
    """A lab without faults, but for a dead site and one whose robots.txt refuses."""
    profile = Profile(
        name="quiet", robots=RobotsProfile(refuse=(REFUSED,)), pairs=(PairConduct(host=DEAD, dead=True),)
    )
    with running_lab(load_catalog(tiny_sites), profile, reviews=ROOT / "there-is-no-such-folder") as running:
        yield running


Invoke = Callable[..., Result]


@pytest.fixture(scope="session")
def reviewloop(tiny_sites: Path) -> Invoke:
    """Run a command line in this process."""

    def invoke(*arguments: object, stdin: str | bytes | None = None, **environment: str) -> Result:
        env = {**_HURRY, "REVIEWLOOP_SITES": str(tiny_sites), "REVIEWLOOP_DATABASE_URL": "", **environment}
        return CliRunner(env=env).invoke(cli, [str(a) for a in arguments], input=stdin)

    return invoke


@pytest.fixture(scope="session")
def crawled_once(
    tmp_path_factory: pytest.TempPathFactory, reviewloop: Invoke, lab: Lab
) -> tuple[Path, dict[str, object]]:
    """A database after `run --until-done --json`, and what that printed."""
    path = tmp_path_factory.mktemp("crawled") / "reviews.db"
    result = reviewloop(
        "run", *PRODUCTS, "--until-done", "--for", PATIENCE_S, "--lab", f"{lab.host}:{lab.port}", "--nodes", 3,
        "--seed", 1, "--db", f"sqlite:///{path}", "--json", "--log", path.with_name("requests.jsonl"),
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    return path, json.loads(result.stdout)


@pytest.fixture
def crawled(
    crawled_once: tuple[Path, dict[str, object]], tmp_path: Path, reviewloop: Invoke
) -> SimpleNamespace:
    """A copy of the crawled database, to be changed freely: `url`, `printed`, `ask` for commands on it; `requests`."""
    path, printed = crawled_once
    url = f"sqlite:///{shutil.copy(path, tmp_path / 'reviews.db')}"

    def ask(*arguments: object) -> dict[str, object]:
        result = reviewloop(*arguments, "--db", url, "--json")
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)

    return SimpleNamespace(url=url, printed=printed, ask=ask, requests=path.with_name("requests.jsonl"))
