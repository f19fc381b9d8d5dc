"""`bench field`: worlds, the bound against cases worked out by hand, comparisons, and processes that end."""

from __future__ import annotations

import math
import os
import signal
import sys
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest
import yaml

from app.lab.profile import Profile
from research.bench import field
from research.bench.field import asked, contest, stored, worlds
from research.bench.field.asked import Choice
from research.bench.field.bound import Facts, Host, Piece, SiteWork, Threshold, facts_of, pages_by, times_of
from research.bench.field.contest import difference
from research.bench.field.measured import Measured
from research.bench.field.processes import command, ended_by_sigterm
from research.bench.field.records import Bound, Record, read
from research.bench.field.report import draw_pages, table, written
from research.bench.field.worlds import Regime, draw, hits
from splitter.catalog.load import parse_catalog
from splitter.errors import InputError
from tasks.store.sql.database import Store

FREE = Host(per_address_per_s=1e6, total_per_s=1e6, pieces={"a": (Piece(0, 1.0),)})


def one_site(
    site: Host, *, engine: Host = FREE, pages: int = 10_000, listed=None, in_flight: int = 10**9
) -> Facts:
    work = SiteWork(site="s", engine="e", pages=pages, listed=listed or {(1, 100): 100})
    return Facts(hosts={"s": site, "e": engine}, work=(work,), in_flight=in_flight)


def host(per_address: float, total: float, *pieces: tuple[Piece, ...], **more) -> Host:
    return Host(
        per_address_per_s=per_address, total_per_s=total, pieces=dict(zip("abcd", pieces, strict=False)), **more
    )  # fmt: skip


def test_pages_are_permits_times_chance() -> None:
    # 2 a second and the first one at once: 21 requests in 10 s, half of them succeed.
    assert pages_by(one_site(host(2, 2, (Piece(0, 0.5),))), 10) == pytest.approx(10.5)


def test_a_total_goes_to_the_best_address_first_and_the_rest_to_the_others() -> None:
    good, bad = (Piece(0, 1.0),), (Piece(0, 0.5),)
    assert pages_by(one_site(host(1, 1, bad, good)), 10) == pytest.approx(11)
    # 21 in all, 11 of them from the good address.
    assert pages_by(one_site(host(1, 2, bad, good)), 10) == pytest.approx(11 + 10 * 0.5)


def test_a_page_waits_for_the_result_page_that_lists_it() -> None:
    # 1 a second and the first at once: 5 result pages of 3 pages in 4 s; half of that where each takes two requests.
    engine = host(1, 1, (Piece(0, 1.0),))
    assert pages_by(one_site(FREE, engine=engine, listed={(1, 3): 50}), 4) == pytest.approx(15)
    assert pages_by(one_site(FREE, engine=engine, listed={(2, 3): 50}), 4) == pytest.approx(7.5)


def test_there_is_no_more_than_what_is_listed_and_what_is_different() -> None:
    assert pages_by(one_site(FREE, listed={(1, 3): 2, (1, 10): 1}), 10) == pytest.approx(16)
    assert pages_by(one_site(FREE, pages=12, listed={(1, 3): 2, (1, 10): 1}), 10) == pytest.approx(12)


def test_permits_of_a_bad_time_cannot_be_saved_for_a_good_one() -> None:
    # 5 s at 1 a second, and one that was due when they began.
    changes = (Piece(0, 0.0), Piece(10, 1.0))
    assert pages_by(one_site(host(1, 1, changes)), 15) == pytest.approx(6)


def test_an_address_is_not_answered_beyond_its_threshold() -> None:
    blocked = host(5, 5, (Piece(0, 1.0),), thresholds={"a": Threshold(3, 10.0)})
    assert pages_by(one_site(blocked), 10) == pytest.approx(3)
    assert pages_by(one_site(blocked), 25) == pytest.approx(9)


def test_an_address_has_so_many_requests_in_flight() -> None:
    # 2 at once, each takes 1 s: 18 in 9 s, and those of the last second are not over yet.
    slow = host(1000, 1000, (Piece(0, 1.0, 1.0),))
    assert pages_by(one_site(slow, in_flight=2), 9) == pytest.approx(20)


def test_the_time_of_a_share_is_when_that_many_pages_can_be_stored() -> None:
    # 0.5 (2 t + 1) pages by t.
    facts = one_site(host(2, 2, (Piece(0, 0.5),)), pages=10)
    assert times_of(facts, [0.5, 1.0]) == pytest.approx([4.5, 9.5], abs=0.11)
    assert times_of(one_site(host(2, 2, (Piece(0, 0.0),)), pages=10), [1.0]) == [None]


def test_whoever_tries_at_random_stays_below_the_bound_on_average() -> None:
    rates = {"a": 0.9, "b": 0.3}
    facts = one_site(host(2, 2, *((Piece(0, rate),) for rate in rates.values())), pages=30)
    seconds, runs = 10, 200
    rng = Random(1)
    stored = [
        min(30, sum(rng.random() < rng.choice(tuple(rates.values())) for _ in range(2 * seconds + 1)))
        for _ in range(runs)
    ]
    assert sum(stored) / runs < pages_by(facts, seconds)


@pytest.mark.parametrize("regime", Regime)
def test_a_world_is_the_same_for_a_seed_and_its_files_are_read_as_they_were_written(regime: Regime) -> None:
    world = draw(regime, 3, products=2)
    assert draw(regime, 3, products=2) == world
    assert draw(regime, 4, products=2).profile != world.profile
    assert parse_catalog(world.sites_yaml(), "sites.yaml") == world.catalog
    assert Profile.model_validate(yaml.safe_load(world.profile_yaml())) == world.profile
    assert hits(world) == hits(draw(regime, 3, products=2))


def test_of_four_nodes_each_site_answers_each_with_another_chance() -> None:
    facts = facts_of(world := draw(Regime.SCARCE, 1, products=1), hits(world), 16)
    for site in world.catalog.sites:
        chances = sorted(told[0].success for told in facts.hosts[site].pieces.values())
        assert chances == pytest.approx(sorted(worlds.RATES))
        shortest, longest = worlds.LATENCY_S
        assert all(shortest <= told[0].latency_s <= longest for told in facts.hosts[site].pieces.values())


def chance_at(facts: Facts, site: str, address: str, t: float) -> float:
    return next(piece for piece in reversed(facts.hosts[site].pieces[address]) if piece.from_s <= t).success


def test_in_drift_good_and_bad_nodes_swap() -> None:
    world = draw(Regime.DRIFT, 1, products=1)
    facts = facts_of(world, hits(world), 16)
    swapped = dict(zip(worlds.RATES, reversed(worlds.RATES), strict=True))
    for site in world.catalog.sites:
        for address in world.addresses:
            before, after = (chance_at(facts, site, address, worlds.SWAP_AT_S + by) for by in (-0.1, 0.1))
            rate = next(rate for rate in worlds.RATES if before == pytest.approx(rate))
            assert after == pytest.approx(swapped[rate])


def test_in_death_one_address_comes_back_as_it_was_and_one_does_not() -> None:
    world = draw(Regime.DEATH, 1, products=1)
    facts = facts_of(world, hits(world), 16)
    site = next(iter(world.catalog.sites))
    over_s = worlds.HANG_AT_S + worlds.HANG_FOR_S
    at = {t: [chance_at(facts, site, one, t) for one in world.addresses] for t in (0, 15, 30, over_s, 1000)}
    assert [rates.count(0.0) for rates in at.values()] == [0, 1, 2, 1, 1]
    assert all(late in (0.0, early) for early, late in zip(at[0], at[over_s], strict=True))


def test_limits_are_those_of_the_regime() -> None:
    def totals(regime: Regime) -> list[float]:
        world = draw(regime, 1, products=1)
        facts = facts_of(world, hits(world), 16)
        return [facts.hosts[site].total_per_s for site in world.catalog.sites]

    assert set(totals(Regime.SCARCE)) == {2}
    assert set(totals(Regime.ROOMY)) == {8}
    mixed = totals(Regime.MIXED)
    assert (mixed.count(2), mixed.count(8)) == (12, 23)
    assert draw(Regime.SHIPPED, 1, products=1).nodes == 8


MEASURED = Measured(
    there=100, pages=90, others=0, pages_at_mark=60, stored_by_s=(1,), stored_at={"half": None}, ended_s=50.0, status=0,
    settled=True, site_requests=180, engine_requests=9, site_outcomes={"page": 90}, subtasks=100, manual=0, targets=100,
    given_up=0, attempts=10, released=1, recalls=0, most_attempts=2, run_cpu_s=1.0, start_cpu_s=0.5, lab_cpu_s=0.1,
    database_bytes=1, load=1.0, violations=0,
)  # fmt: skip


def record(strategy: str, seed: int = 1, **measured) -> Record:
    bound = Bound(pages_at_mark=80.0, possible_at={"all": 25.0})
    return Record(
        regime="scarce", job="small", nodes=4, seed=seed, strategy=strategy, seconds=55.0, bound=bound,
        measured=replace(MEASURED, **measured),
    )  # fmt: skip


def test_ratios_are_means_over_the_seeds() -> None:
    told = contest.ratios([record("random"), record("random", 2, pages_at_mark=40, site_requests=90)])
    assert told == {
        "scarce.random.pages_of_bound": 0.625,
        "scarce.random.requests_per_page": 1.5,
        "scarce.random.done_of_bound": 2.0,
    }


@pytest.mark.parametrize(
    "fault", [{"status": 1}, {"settled": False}, {"manual": 3}, {"given_up": 3}, {"pages": 88}]
)
def test_a_run_that_is_not_done_has_no_time_at_which_it_was(fault) -> None:
    told = contest.ratios([record("feedback", **fault), record("random")])
    assert told["scarce.feedback.done_of_bound"] is None
    assert told["scarce.random.done_of_bound"] == 2.0


def test_a_paired_difference_has_a_lower_bound_by_students_t() -> None:
    # Differences 0.1, 0.2, 0.3: s = 0.1, t(0.95, 2) = 2.920.
    found = difference([110.0, 240.0, 390.0], [100.0, 200.0, 300.0])
    assert found.mean == pytest.approx(0.2)
    assert found.lower_95 == pytest.approx(0.2 - 2.920 * 0.1 / math.sqrt(3), abs=1e-4)
    assert difference([1.0], [2.0]).lower_95 is None


def test_strategies_are_compared_in_the_same_worlds_only() -> None:
    records = [
        record("feedback", 1, pages=99),
        record("feedback", 2),
        record("random", 1),
        record("random", 3),
    ]
    told = contest.compared(records, "feedback")["scarce.feedback_vs_random"]
    assert told["pages"] == {"seeds": 1, "mean": 0.1, "lower_95": None}


def test_finished_runs_are_read_again_and_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []

    def run_once(world, strategy, **_):
        ran.append((world.seed, strategy))
        return MEASURED

    monkeypatch.setattr(field, "run_once", run_once)
    monkeypatch.setattr(field, "bound_of", lambda *_: Bound(pages_at_mark=80.0, possible_at={"all": 25.0}))
    runs = tmp_path / "runs.jsonl"
    first = field.run(tmp_path, regime="scarce", runs=runs)
    again = field.run(tmp_path, regime="scarce", seeds=2, runs=runs)
    assert ran == [(1, "feedback"), (1, "random"), (2, "feedback"), (2, "random")]
    assert again["figures"]["runs"].items() >= first["figures"]["runs"].items()


def test_no_run_is_begun_that_may_end_after_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = []
    clock = iter([0.0, 0.0, 200.0])

    def run_once(world, strategy, **_):
        ran.append(strategy)
        return MEASURED

    monkeypatch.setattr(field, "run_once", run_once)
    monkeypatch.setattr(field, "bound_of", lambda *_: Bound(pages_at_mark=80.0, possible_at={"all": 25.0}))
    monkeypatch.setattr(field, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    told = field.run(tmp_path, regime="scarce", limit_minutes=5.0)  # the second run may take until 310 s
    assert ran == ["feedback"]
    assert list(told["figures"]["runs"]) == ["scarce.feedback.1"]


def test_the_full_order_begins_with_what_weighs_most_and_has_each_run_once() -> None:
    runs = asked.full(Choice())
    assert len(set(runs)) == len(runs)
    heads = [(one.regime.value, one.job, one.seed, one.strategy, one.runner.value) for one in runs]
    assert heads[:2] == [("scarce", "small", 1, name, "embedded") for name in ("feedback", "random")]
    assert {head[0] for head in heads[:10]} == {"scarce"}
    assert {head[2] for head in heads[10:26]} == {1}
    assert {head[0] for head in heads[:26]} == set(Regime)
    places = [
        heads.index(head)
        for head in (
            ("blocks", "small", 2, "random", "embedded"),
            ("scarce", "long", 1, "feedback", "embedded"),
            ("scarce", "small", 1, "feedback", "cluster"),
            ("scarce", "small", 1, "sed", "embedded"),
            ("blocks", "small", 1, "feedback-no-modification", "embedded"),
        )
    ]
    assert places == sorted(places)
    chosen = asked.full(Choice(regimes="death", seeds=2, seed_from=7))
    assert [one.seed for one in chosen][:4] == [7, 7, 8, 8]
    with pytest.raises(InputError, match="nothing of --full"):
        asked.full(Choice(regimes="death", jobs="long"))


def test_an_empty_store_of_either_kind_is_read(store: Store) -> None:
    found = stored.counts(store)
    assert (found.pop("database_bytes", None) is None) == store.is_sqlite
    assert found.pop("settled")
    assert set(found.values()) == {0}
    with store.read() as conn:
        pages = stored.StoredPages.of(conn, datetime(2026, 1, 1, tzinfo=UTC), [])
    assert pages.document(45.0)["stored_at"] == dict.fromkeys(("half", "most", "all"))


def test_times_of_pages_count_from_the_begin_and_shares_of_what_is_there() -> None:
    pages = stored.StoredPages(4, (0.5, 1.0, 7.2), 1)
    assert pages.document(1.0) == {
        "there": 4, "pages": 3, "others": 1, "pages_at_mark": 2, "stored_by_s": (2, 2, 2, 2, 2, 2, 2, 3),
        "stored_at": {"half": 1.0, "most": None, "all": None},
    }  # fmt: skip


def test_a_cluster_is_compared_with_the_embedded_run_of_the_same_world() -> None:
    cluster = replace(record("feedback", pages_at_mark=54, stored_at={"half": 20.0}), runner="cluster")
    told = contest.compared([record("feedback", stored_at={"half": 10.0}), cluster], "feedback")
    assert told["scarce-cluster.feedback_vs_embedded"] == {
        "pages_at_mark": {"seeds": 1, "mean": -0.1, "lower_95": None},
        "pages": {"seeds": 1, "mean": 0.0, "lower_95": None},
        "half_sooner": {"seeds": 1, "mean": -0.5, "lower_95": None},
    }


def test_the_documents_table_has_a_line_for_each_regime_and_strategy() -> None:
    records = [record("feedback"), record("feedback", 2, pages_at_mark=80), record("random", given_up=3)]
    text = written("before\n<!-- field -->\nold\n<!-- end of field -->\nafter\n", records)
    assert text.startswith("before\n<!-- field -->\nSeeds: 1, 2.\n\n| regime |")
    assert text.endswith("(plots/field-small.png)\n<!-- end of field -->\nafter\n")
    assert "| scarce | `random` | 1 | +0.0% | +0.0% | - |" in text
    first, second = list(table(records))[2:]
    assert first.startswith(
        "| scarce | `feedback` | 2 | 70, 0.88 | 2.00 | never | 2 of 2 | 2.00 | 0.0%, 0.0% | 2 | 10.0% |"
    )
    assert second.startswith(
        "| scarce | `random` | 1 | 60, 0.75 | 2.00 | never | 0 of 1 | - | 3.0%, 0.0% | 2 | 10.0% |"
    )
    with pytest.raises(InputError, match="no place"):
        written("before\n", records)


def test_the_picture_shows_pages_over_time_beside_a_bound_above_them(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = {}
    monkeypatch.setattr("research.tools.plots.panels", lambda *arguments: drawn.update(arguments[-1]))
    run = record("random", stored_by_s=tuple(range(1, 41)))
    draw_pages(
        Path("field.png"),
        [replace(run, seconds=48.0, bound=Bound(pages_at_mark=1.0, possible_at={"all": 5.0}))],
    )
    assert drawn["scarce"]["random"] == [(float(t), float(min(t, 40))) for t in range(0, 49, 2)]
    times, pages = zip(*drawn["scarce"]["bound"], strict=True)
    assert times == tuple(range(0, 49, 2))
    assert sorted(pages) == list(pages)
    assert pages[0] == 0
    assert pages[2] > 4


@pytest.mark.parametrize("wrong", [{"regime": "scarse"}, {"strategies": "feedback,rnd"}, {"job": "tiny"}])
def test_a_name_that_is_not_known_is_refused_with_those_that_are(
    tmp_path: Path, wrong: dict[str, str]
) -> None:
    with pytest.raises(InputError, match="there is "):
        field.run(tmp_path, **wrong)


def test_a_file_that_holds_no_runs_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text('{"regime": "scarce"}\n', "utf-8")
    with pytest.raises(InputError, match=r"runs\.jsonl:1: "):
        read(path)


def test_sigterm_leaves_the_block_as_an_exception_so_that_what_it_started_is_ended() -> None:
    before = signal.getsignal(signal.SIGTERM)
    ended: list[str] = []

    def terminated() -> None:
        with ended_by_sigterm(), ExitStack() as stack:
            stack.callback(ended.append, "lab")
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(SystemExit):
        terminated()
    assert ended == ["lab"]
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.skipif(sys.platform != "linux", reason="watches processes by pidfd")
def test_a_command_ends_with_its_context_and_says_what_it_used(tmp_path: Path) -> None:
    with command(
        ("lab", "--port", "0", "--sites", "paper-2014", "--json"), tmp_path / "lab.txt", piped=True
    ) as lab:
        assert lab.first_line()
        started_s = lab.cpu_s()
    ended = lab.wait(0)
    assert (ended.status, ended.in_time) == (0, False)
    assert 0 < started_s <= ended.cpu_s + 0.02
