"""The API does what its description says, and Prometheus reads the metrics."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import schemathesis
from dashboard import Served
from hypothesis import HealthCheck, Phase, given, settings
from patience import PATIENCE_S
from prometheus_client.parser import text_string_to_metric_families
from sample_store import IMPORTED, OTHER, PRODUCT, SITE, SOURCE, VARIANT
from sqlalchemy import func, select, update

from tasks.domain.grants import AddressGrants, HostGrants
from tasks.domain.reasons import Reason, because
from tasks.jobs.measurements import SweepTimes, save_measurements
from tasks.scheduling.alerting import Alert
from tasks.store.queue import notices
from tasks.store.sql.tables import attempts

_EXAMPLES = 8


def test_reviews_are_read_to_the_end_by_their_cursor(sample: Served) -> None:
    found, before = [], 0
    for _ in range(10):
        answer = sample.get("/api/reviews", params={"limit": 3, "before": before}).json()
        found += [one["id"] for one in answer["reviews"]]
        before = answer["before"]
        if before is None:
            break
    assert (found, before) == ([8, 7, 6, 5, 4, 3, 2, 1], None)


def test_reviews_are_filtered_by_voice(sample: Served) -> None:
    (only,) = sample.get("/api/reviews", params={"voice": "praise"}).json()["reviews"]
    assert (only["id"], only["voice"], only["voice_probability"], only["sentiment"]) == (
        5,
        "praise",
        0.87,
        -0.5,
    )
    assert only["confidence"] == 0.43
    assert sample.get("/api/reviews", params={"voice": "nobody"}).status_code == 422


def test_changes_by_the_api_are_done_and_noted(served: Served) -> None:
    done = served.post("/api/failed", json={"action": "retry", "subtasks": [3, 1]}).json()
    assert done["done"] == [3]
    assert done["refused"][0]["subtask"] == 1
    added = served.post("/api/products", json={"names": ["蒙牛早餐奶", PRODUCT]}).json()
    assert ([one["name"] for one in added["added"]], added["already"]) == (["蒙牛早餐奶"], [PRODUCT])
    assert served.post("/api/nodes", json={"node": "node1", "action": "drain"}).ok
    assert [one["action"] for one in served.get("/api/audit").json()] == ["drain", "add products", "retry"]


def test_an_imported_review_has_a_source_and_no_node(sample: Served) -> None:
    imported, crawled, *_ = sample.get("/api/reviews").json()["reviews"]
    names = ("id", "provenance", "source", "node", "variant", "rating")
    assert [imported[name] for name in names] == [IMPORTED, "imported", SOURCE, "", VARIANT, 2.0]
    assert [crawled[name] for name in names] == [7, "crawled", None, "node1", "", None]


def test_a_product_is_changed_and_removed_by_the_api(served: Served) -> None:
    product = served.address + "api/products/1"
    same = served.session.patch(product, json={}, timeout=PATIENCE_S).json()
    assert (same["cancelled"], same["looked_for"]) == (0, True)
    changed = {"name": "光明鲜奶", "category": "food", "aliases": ["光明奶"], "priority": 3, "recrawl": "12h"}
    assert served.session.patch(product, json=changed, timeout=PATIENCE_S).json()["cancelled"] == 4
    same = served.session.patch(product, json={"counted_as": OTHER}, timeout=PATIENCE_S).json()
    assert (same["counted_as"], same["cancelled"], same["counted_with"]) == (OTHER, 0, [])
    unknown = served.session.patch(product, json={"counted_as": "没有"}, timeout=PATIENCE_S)
    assert (unknown.status_code, "there is no product" in unknown.text) == (400, True)
    no_query = served.session.patch(product, json={"keywords": [""]}, timeout=PATIENCE_S)
    assert no_query.status_code == 422
    gone = served.session.delete(product, timeout=PATIENCE_S).json()
    assert (gone["name"], gone["cancelled"], gone["reviews"], gone["was_looked_for"]) == (
        "光明鲜奶",
        0,
        7,
        True,
    )
    assert served.session.patch(product, json={"recrawl": "7d"}, timeout=PATIENCE_S).status_code == 400
    assert served.session.delete(served.address + "api/products/9", timeout=PATIENCE_S).status_code == 404
    (row, _) = served.get("/api/products?sort=name").json()["products"]
    assert (row["looked_for"], row["priority"], row["recrawl_every_s"]) == (False, 3, None)
    assert [one["action"] for one in served.get("/api/audit").json()] == [
        "remove product",
        *["edit product"] * 2,
    ]


def test_a_schedule_is_listed_and_paused_by_the_api(served: Served) -> None:
    (one,) = served.get("/api/schedules").json()
    assert (one["what"], one["name"], one["state"]) == (
        "report",
        "report to https://hooks.example.cn/...",
        "failed",
    )
    paused = {"number": one["number"], "action": "pause"}
    assert served.post("/api/schedules", json=paused).json() == paused
    (one,) = served.get("/api/schedules").json()
    assert (one["state"], one["next_at"]) == ("paused", None)


def test_prometheus_reads_the_metrics(sample: Served) -> None:
    families = {one.name: one for one in text_string_to_metric_families(sample.get("/metrics").text)}
    queues = {sample.labels["queue"]: sample.value for sample in families["reviewloop_subtasks"].samples}
    assert queues["MANUAL"] == 2
    assert sum(sample.value for sample in families["reviewloop_attempts"].samples) == 12
    (breaker,) = families["reviewloop_breaker"].samples
    assert (breaker.labels["host"], breaker.labels["cause"], breaker.value) == (SITE, "captcha", 1.0)
    assert all(one.documentation for one in families.values())
    assert "reviewloop_scheduler_silent_seconds" not in families  # none has run


def test_metrics_of_the_scheduler_and_of_alerts_are_those_it_kept(served: Served) -> None:
    grants = {
        SITE: HostGrants(
            share=0.5, next_s=2.0, addresses={"127.0.0.2": AddressGrants(share=0.25, next_s=9.0)}
        ),
        "quiet.cn": HostGrants(),
    }
    with served.store.begin() as tx:
        now = tx.now
        save_measurements(tx, {"turn": SweepTimes(4, 0.5, 0.3)}, grants)
        notices.keep_alerts(tx, [Alert("silent", "node1", because(Reason.OTHER, text="away"))])
        tx.engine_connection.execute(update(attempts).values(ended_at=now, requests=12, bytes=1200))
        n = tx.engine_connection.execute(select(func.count()).select_from(attempts)).scalar_one()
    text = served.get("/metrics").text
    values = {
        (one.name, *sorted(one.labels.values())): one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
    }
    assert values["reviewloop_sweep_seconds_count", "turn"] == 4
    assert values["reviewloop_sweep_seconds_sum", "turn"] == 0.5
    assert values["reviewloop_sweep_longest_seconds", "turn"] == 0.3
    assert values["reviewloop_host_pace", SITE] == 0.5
    assert values["reviewloop_permits_ahead_seconds", SITE] == 2
    assert values["reviewloop_address_pace", SITE, "127.0.0.2"] == 0.25
    assert values["reviewloop_address_rest_seconds", SITE, "127.0.0.2"] == 9
    assert ("reviewloop_host_pace", "quiet.cn") not in values
    assert values["reviewloop_alert", "node1", "silent"] == 1
    assert values[("reviewloop_received_bytes_per_second",)] == 10 * n
    assert values["reviewloop_recent_failures", SITE, "blocked"] == 1
    documented = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text("utf-8")
    missing = {
        name for name in re.findall(r"^# TYPE (\S+)", text, re.MULTILINE) if f"`{name}`" not in documented
    }
    assert missing == set()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_schemathesis_finds_nothing(served: Served) -> None:
    schema = schemathesis.openapi.from_dict(served.get("/api/openapi.json").json())
    tried = 0
    for operation in (one.ok() for one in schema.get_all_operations()):

        @settings(
            max_examples=_EXAMPLES,
            deadline=None,
            derandomize=True,
            database=None,
            phases=(Phase.explicit, Phase.generate),
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy())
        def tries(case: schemathesis.Case) -> None:
            sent = case.query or {}
            first, last = sent.get("from"), sent.get("to")
            if (first or last) and (sent.get("days") or (first and last and last < first)):
                # No description can say that two parameters contradict each other.
                # 404: the address names something that is not there.
                assert case.call(base_url=served.address, timeout=PATIENCE_S).status_code in (400, 404)
                return
            case.call_and_validate(base_url=served.address, timeout=PATIENCE_S)

        tries()
        tried += 1
    assert tried >= 15
