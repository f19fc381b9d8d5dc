"""Values that a database refuses: the request is wrong, and the database answers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import requests
import sample_store
from dashboard import Served

from app.run.setting_fields import Settings
from app.web.address import listening
from app.web.server import serving
from tasks.store.sql.database import Store

NUL = "\0"


@pytest.fixture
def on_postgres(postgres_store: Store) -> Iterator[Served]:
    """The sample in PostgreSQL, which takes no NUL."""
    sample_store.fill(postgres_store)
    url = postgres_store.engine.url.render_as_string(hide_password=False)
    with (
        listening("127.0.0.1", 0) as sock,
        serving(Settings(database_url=url, sites="paper-2014"), postgres_store, sock) as address,
        requests.Session() as session,
    ):
        session.trust_env = False
        yield Served(address, postgres_store, session)


@pytest.mark.parametrize(
    "path",
    [
        "reviews?q=%00",
        "api/reviews?q=a%00b",
        "api/reviews?site=%00",
        "api/reviews?product=%00",
        "api/products/%00",
    ],
)
def test_a_nul_in_an_address_is_no_fault_of_the_server(on_postgres: Served, path: str) -> None:
    answer = on_postgres.get(path)
    assert answer.status_code in (200, 400, 404, 422), (
        answer.text
    )  # 200: no review was compared with the words
    assert "does not answer" not in answer.text


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        ("reviews/1/correct", {"voice": "news", "theme_shown": "", "because": NUL}),
        (
            "products/1/edit",
            {"name": "x", "name_shown": "x", "priority": "0", "priority_shown": "0", "counted_as": NUL},
        ),
        ("products/1/edit", {"name": f"x{NUL}", "name_shown": "x", "priority": "0", "priority_shown": "0"}),
    ],
)
def test_a_nul_in_a_form_is_a_wrong_request_and_changes_nothing(
    on_postgres: Served, path: str, sent: dict[str, str]
) -> None:
    refused = on_postgres.post(path, data=sent)
    assert refused.status_code in (400, 404, 422), refused.text
    with on_postgres.store.read() as tx:
        assert tx.value("SELECT count(*) FROM corrections") == 0
