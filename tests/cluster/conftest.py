"""A small web, the pages an embedded run collects there, and processes that end with their test."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from clusters import FAST, SILENT_S, SITES, Pages, Process, Web, add_products, stored_pages, violations
from patience import PATIENCE_S

from app.lab.running import running_lab
from app.run.cluster.servers import free_port
from app.run.embedded import EmbeddedRunner
from app.run.open_store import open_store
from app.run.process import Until
from app.run.setting_fields import Settings
from splitter.catalog.names import Kind
from tasks.store.queue.nodes import Node

BUILTIN = Path(__file__).parents[2] / "splitter" / "data" / "paper-2014.yaml"


@pytest.fixture(scope="session")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few sites of the built-in catalog, with limits that let a test run fast."""
    catalog = yaml.safe_load(BUILTIN.read_text(encoding="utf-8"))
    catalog["name"] = "cluster-test"
    catalog["limits"] = FAST
    catalog["engines"]["baidu"]["limits"] = FAST
    del catalog["engines"]["weibo-yunyun"], catalog["rules"]["microblog"]
    catalog["sites"] = {
        name: {**catalog["sites"][name], "pages": 3, "quota": {"min": 3, "max": 12}} for name in SITES
    }
    path = tmp_path_factory.mktemp("catalog") / "sites.yaml"
    path.write_text(yaml.safe_dump(catalog, allow_unicode=True), encoding="utf-8")
    return path


@pytest.fixture
def web(sites: Path, tmp_path: Path) -> Iterator[Web]:
    """A lab of the test's own: its faults begin anew."""
    log = tmp_path / "lab.log"
    with running_lab(Settings(sites=str(sites)).catalog(), "calm", log_path=log) as lab:
        yield Web(lab.port, sites, log)


@pytest.fixture(scope="session")
def wanted(sites: Path, tmp_path_factory: pytest.TempPathFactory) -> Pages:
    """The pages an embedded run collects."""
    folder = tmp_path_factory.mktemp("embedded")
    with running_lab(Settings(sites=str(sites)).catalog(), "calm") as lab:
        settings = Settings(
            database_url=f"sqlite:///{folder / 'e.db'}",
            sites=str(sites),
            lab=(lab.host, lab.port),
            silent_after_s=SILENT_S,
        )
        with open_store(settings) as store:
            add_products(store)
            nodes = [Node("only", frozenset(Kind), 8)]
            asyncio.run(
                EmbeddedRunner(settings, settings.catalog(), store, nodes, Until(True, PATIENCE_S)).run()
            )
            assert not violations(store)
            found = stored_pages(store)
    assert len(found) > 20
    return found


Launch = Callable[..., Process]


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Launch]:
    """Starts `python -m WORDS...`; ends what is left of it after the test."""
    started: list[Process] = []

    def start(*words: object, settings: Settings) -> Process:
        process = Process([str(word) for word in words], settings, tmp_path)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()


@pytest.fixture
def unused_port() -> int:
    """A loopback port nobody listens on."""
    return free_port()
