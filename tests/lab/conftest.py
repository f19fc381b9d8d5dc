"""What the lab's tests share: the built-in catalog, a web of made texts, and a plain client."""

from __future__ import annotations

import http.client
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from patience import PATIENCE_S

from app.lab.pages import Corpus, make_texts
from app.lab.server import Lab
from app.lab.web import LocalWeb
from splitter.catalog.model import Catalog

ROOT = Path(__file__).resolve().parents[2]
NO_REVIEWS = ROOT / "there-is-no-such-folder"


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    data = yaml.safe_load((ROOT / "splitter" / "data" / "paper-2014.yaml").read_text("utf-8"))
    del data["version"]
    return Catalog.model_validate(data, strict=False)


@pytest.fixture(scope="session")
def corpus(catalog: Catalog) -> Corpus:
    return Corpus(catalog, 1, make_texts())


@pytest.fixture(scope="session")
def local_web(catalog: Catalog, corpus: Corpus) -> LocalWeb:
    return LocalWeb(catalog, corpus)


@pytest.fixture
def no_reviews() -> Path:
    return NO_REVIEWS


@dataclass(frozen=True)
class Got:
    status: int
    headers: dict[str, str]
    body: bytes


@pytest.fixture
def get() -> Callable[..., Got]:
    """LabRequest a running lab once, on a connection of its own, from any loopback address; never tries again."""

    def get_once(lab: Lab, host: str, target: str, client: str = "127.0.0.1", method: str = "GET") -> Got:
        connection = http.client.HTTPConnection(
            lab.host, lab.port, timeout=PATIENCE_S, source_address=(client, 0)
        )
        try:
            connection.request(method, target, headers={"Host": host})
            response = connection.getresponse()
            headers = {name.lower(): value for name, value in response.getheaders()}
            return Got(response.status, headers, response.read())
        finally:
            connection.close()

    return get_once
