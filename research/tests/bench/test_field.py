"""`bench field`: worlds, the bound against cases worked out by hand, comparisons, and processes that end."""

from __future__ import annotations

import math
import signal
from dataclasses import replace
from random import Random

import pytest
import yaml

from app.lab.profile import Block, Profile
from research.bench.field import bench as field
from research.bench.field import contest, measured, worlds
from research.bench.field.bound import Facts, Host, Piece, SiteWork, facts_of, pages_by, times_of
from research.bench.field.contest import difference
from research.bench.field.measured import Measured, stored_over_time
from research.bench.field.processes import command
from research.bench.field.records import Bound, Record, read
from research.bench.field.worlds import Regime, draw, hits
from research.tools.meter import BenchError
from splitter.catalog.load import parse_catalog
from splitter.errors import InputError
from tasks.store.sql.database import Store
from tasks.store.sql.tables import metadata

FREE = Host(per_address_per_s=1e6, total_per_s=1e6, pieces={"a": (Piece(0, 1.0),)})


def one_site(site, *, engine=FREE, pages=10_000, listed=None, in_flight=10**9):
    work = SiteWork(site="s", engine="e", pages=pages, listed=listed or {(1, 100): 100})
    return Facts(hosts={"s": site, "e": engine}, work=(work,), in_flight=in_flight)


def host(per_address, total, *pieces, **more):
    by_address = dict(zip("abcd", pieces, strict=False))
    return Host(per_address_per_s=per_address, total_per_s=total, pieces=by_address, **more)


GOOD, HALF = (Piece(0, 1.0),), (Piece(0, 0.5),)


@pytest.mark.parametrize(
    ("facts", "seconds", "pages"),
    [
        # 2 a second and the first one at once: 21 requests in 10 s, half of them succeed.
        (one_site(host(2, 2, HALF)), 10, 10.5),
        # The total goes to the best address first: 21 in all, 11 of them from the good one.
        (one_site(host(1, 2, HALF, GOOD)), 10, 11 + 10 * 0.5),
        # 5 result pages of 3 pages in 4 s; half of that if each takes two requests.
        (one_site(FREE, engine=host(1, 1, GOOD), listed={(1, 3): 50}), 4, 15),
        (one_site(FREE, engine=host(1, 1, GOOD), listed={(2, 3): 50}), 4, 7.5),
        # No more than what is listed, and what is different.
        (one_site(FREE, listed={(1, 3): 2, (1, 10): 1}), 10, 16),
        (one_site(FREE, pages=12, listed={(1, 3): 2, (1, 10): 1}), 10, 12),
        # Permits of a bad time cannot be saved: 5 s at 1 a second, and one that was due when they began.
        (one_site(host(1, 1, (Piece(0, 0.0), Piece(10, 1.0)))), 15, 6),
        # An address is not answered beyond its threshold.
        (one_site(host(5, 5, GOOD, thresholds={"a": Block(requests=3, window_s=10.0, for_s=60.0)})), 25, 9),
        # 2 in flight at once, each takes 1 s: 18 in 9 s, and those of the last second are not over yet.
        (one_site(host(1000, 1000, (Piece(0, 1.0, 1.0),)), in_flight=2), 9, 20),
    ],
)
def test_the_bound_of_cases_worked_out_by_hand(facts, seconds, pages):
    assert pages_by(facts, seconds) == pytest.approx(pages)


def test_the_time_of_a_share_is_when_that_many_pages_can_be_stored():
    # 0.5 (2 t + 1) pages by t.
    assert times_of(one_site(host(2, 2, HALF), pages=10), [0.5, 1.0]) == pytest.approx([4.5, 9.5], abs=0.11)
    assert times_of(one_site(host(2, 2, (Piece(0, 0.0),)), pages=10), [1.0]) == [None]


def test_who_tries_at_random_stays_below_the_bound_on_average():
    rates = (0.9, 0.3)
    facts = one_site(host(2, 2, *((Piece(0, rate),) for rate in rates)), pages=30)
    rng = Random(1)
    stored = [min(30, sum(rng.random() < rng.choice(rates) for _ in range(21))) for _ in range(200)]
    assert sum(stored) / 200 < pages_by(facts, 10)


@pytest.mark.parametrize("regime", Regime)
def test_a_world_is_the_same_for_a_seed_and_its_files_are_read_as_they_were_written(regime):
    world = draw(regime, 3, products=2)
    assert draw(regime, 3, products=2) == world
    assert draw(regime, 4, products=2).profile != world.profile
    assert parse_catalog(world.sites_yaml(), "sites.yaml") == world.catalog
    assert Profile.model_validate(yaml.safe_load(world.profile_yaml())) == world.profile


def facts(regime):
    world = draw(regime, 1, products=1)
    return world, facts_of(world, hits(world), 16)


def chance_at(of, site, address, t):
    return next(piece for piece in reversed(of.hosts[site].pieces[address]) if piece.from_s <= t).success


def test_each_site_answers_four_nodes_with_four_chances_which_swap_in_drift():
    world, of = facts(Regime.DRIFT)
    swapped = dict(zip(worlds.RATES, reversed(worlds.RATES), strict=True))
    for site in world.catalog.sites:
        before = [chance_at(of, site, one, worlds.SWAP_AT_S - 0.1) for one in world.addresses]
        after = [chance_at(of, site, one, worlds.SWAP_AT_S + 0.1) for one in world.addresses]
        assert sorted(before) == pytest.approx(sorted(worlds.RATES))
        rates = [next(rate for rate in worlds.RATES if rate == pytest.approx(one)) for one in before]
        assert after == pytest.approx([swapped[rate] for rate in rates])


def test_in_death_one_address_comes_back_as_it_was_and_one_does_not():
    world, of = facts(Regime.DEATH)
    site = next(iter(world.catalog.sites))
    over_s = worlds.HANG_AT_S + worlds.HANG_FOR_S
    at = {t: [chance_at(of, site, one, t) for one in world.addresses] for t in (0, 15, 30, over_s, 1000)}
    assert [rates.count(0.0) for rates in at.values()] == [0, 1, 2, 1, 1]
    assert all(late in (0.0, early) for early, late in zip(at[0], at[over_s], strict=True))


def test_limits_are_those_of_the_regime():
    totals = {}
    for regime in (Regime.SCARCE, Regime.ROOMY, Regime.MIXED):
        world, of = facts(regime)
        totals[regime] = [of.hosts[site].total_per_s for site in world.catalog.sites]
    assert (set(totals[Regime.SCARCE]), set(totals[Regime.ROOMY])) == ({2}, {8})
    assert (totals[Regime.MIXED].count(2), totals[Regime.MIXED].count(8)) == (12, 23)
    assert draw(Regime.SHIPPED, 1, products=1).nodes == 8


MEASURED = Measured(
    there=100, pages=90, pages_at_mark=60, stored_by_s=(1,), stored_at={"half": None}, ended_s=50.0, status=0,
    settled=True, site_requests=180, engine_requests=9, subtasks=100, manual=0, targets=100, given_up=0,
    attempts=10, released=1, recalls=0, run_cpu_s=1.0, start_cpu_s=0.5, load=1.0, violations=0,
)  # fmt: skip
BOUND = Bound(pages_at_mark=80.0, possible_at={"all": 25.0})


def record(strategy, seed=1, runner="embedded", **more):
    return Record(
        regime="scarce", job="small", nodes=4, seed=seed, strategy=strategy, seconds=55.0, runner=runner,
        bound=BOUND, measured=replace(MEASURED, **more),
    )  # fmt: skip


def test_ratios_are_means_over_the_seeds():
    assert contest.ratios([record("random"), record("random", 2, pages_at_mark=40, site_requests=90)]) == {
        "scarce.random.pages_of_bound": 0.625,
        "scarce.random.requests_per_page": 1.5,
        "scarce.random.done_of_bound": 2.0,
    }


@pytest.mark.parametrize(
    "fault", [{"status": 1}, {"settled": False}, {"manual": 3}, {"given_up": 3}, {"pages": 88}]
)
def test_a_run_that_is_not_done_has_no_time_at_which_it_was(fault):
    found = contest.ratios([record("feedback", **fault), record("random")])
    assert found["scarce.feedback.done_of_bound"] is None
    assert found["scarce.random.done_of_bound"] == 2.0


def test_a_paired_difference_has_a_lower_bound_by_students_t():
    # Differences 0.1, 0.2, 0.3: s = 0.1, t(0.95, 2) = 2.920.
    found = difference([110.0, 240.0, 390.0], [100.0, 200.0, 300.0])
    assert found["mean"] == pytest.approx(0.2)
    assert found["lower_95"] == pytest.approx(0.2 - 2.920 * 0.1 / math.sqrt(3), abs=1e-4)
    assert difference([1.0], [2.0])["lower_95"] is None


def test_runs_are_compared_in_the_same_worlds_only():
    runs = [record("feedback", 1, pages=99), record("feedback", 2), record("random", 1), record("random", 3)]
    runs.append(record("feedback", 2, "cluster", pages_at_mark=54))
    found = contest.compared(runs, "feedback")
    assert found["scarce.feedback_vs_random"]["pages"] == {"seeds": 1, "mean": 0.1, "lower_95": None}
    assert found["scarce-cluster.feedback_vs_embedded"]["pages_at_mark"]["mean"] == -0.1


def test_finished_runs_are_read_again_and_not_run(tmp_path, monkeypatch):
    ran = []

    def run_once(world, strategy, **_):
        ran.append((world.seed, strategy))
        return MEASURED

    monkeypatch.setattr(field, "run_once", run_once)
    monkeypatch.setattr(field, "bound_of", lambda *_: BOUND)
    runs = tmp_path / "runs.jsonl"
    first = field.run(tmp_path, False, regimes=("scarce",), runs=runs)
    again = field.run(tmp_path, False, regimes=("scarce",), seeds=2, runs=runs)
    assert ran == [(1, "feedback"), (1, "random"), (2, "feedback"), (2, "random")]
    assert again["figures"]["runs"].items() >= first["figures"]["runs"].items()
    runs.write_text('{"regime": "scarce"}\n', "utf-8")
    with pytest.raises(InputError, match=r"runs\.jsonl:1: "):
        read(runs)


def test_times_of_pages_count_from_the_begin_and_shares_of_what_is_there():
    assert stored_over_time([0.5, 1.0, 7.2], 4, 1.0) == {
        "there": 4, "pages": 3, "pages_at_mark": 2, "stored_by_s": (2, 2, 2, 2, 2, 2, 2, 3),
        "stored_at": {"half": 1.0, "most": None, "all": None},
    }  # fmt: skip


def test_an_empty_store_is_read(tmp_path):
    store = Store.open(f"sqlite:///{tmp_path / 'run.db'}")
    with store.begin() as tx:
        metadata.create_all(tx.engine_connection)
        counts = measured._counts(tx)
    store.close()
    assert counts.pop("settled")
    assert set(counts.values()) == {0}


def test_a_command_ends_with_its_context_and_its_cpu_time_is_known(tmp_path):
    arguments = ("lab", "--port", "0", "--sites", "paper-2014", "--json")
    with command(arguments, tmp_path / "lab.txt") as lab:
        assert "port" in lab.ready()
        started_s = lab.cpu_s()
        ended = lab.wait(0)
    assert 0 < started_s <= ended.cpu_s
    assert ended.status in (0, -signal.SIGINT)
    with (
        command(("lab", "--port", "none"), tmp_path / "none.txt") as lab,
        pytest.raises(BenchError, match="none"),
    ):
        lab.ready()
