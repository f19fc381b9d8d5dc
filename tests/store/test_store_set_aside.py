"""What no sweep can do anything with is set aside for a person, and holds up nothing else."""

from __future__ import annotations

from datetime import timedelta
from random import Random

from sqlalchemy import update
from world import CATALOG, SITE, World

from splitter.catalog.entries import catalog_hash, entries_of, entries_without_browser
from splitter.catalog.names import Kind
from tasks.domain.attempt_end import Counters
from tasks.domain.states import State
from tasks.fetching.hosts import HostCatalog
from tasks.jobs import recalling, sweeps
from tasks.jobs.context import Context, LoopSettings
from tasks.jobs.scheduler_state import SchedulerState
from tasks.jobs.ticks import tick
from tasks.store.queue import manual, nodes
from tasks.store.queue.attempts import release_leases
from tasks.store.sql.tables import attempts, subtasks
from tasks.store.sql.tables import nodes as node_rows

OTHER = "315ok.com"


def without(site: str) -> Context:
    """The context of a scheduler whose catalog lacks a site."""
    catalog = CATALOG.model_copy(update={"sites": {n: s for n, s in CATALOG.sites.items() if n != site}})
    loop = LoopSettings()
    return Context(catalog, loop, HostCatalog(catalog), Random(0), SchedulerState(loop.strategy))


def turn(world: World) -> list[str]:
    """The sites of the leases that a turn gives."""
    return [lease.site for lease in world.do(tick, world.context, ("turn",))]


class TestSitesThatLeaveTheCatalog:
    def test_their_work_waits_for_a_person_who_is_told_what_to_do(self, world: World) -> None:
        gone, *_ = world.add("特仑苏", sites=(SITE, OTHER))
        world.node("n1")
        world.context = without(SITE)
        turn(world)
        assert world.state(gone) is State.MANUAL
        (row,) = world.look(manual.list_manual)
        assert (row.subtask_id, row.reason) == (gone, "unknown_site")
        assert SITE in row.why
        assert "sites.yaml" in row.suggestion
        assert {r.site: r.state for r in world.rows(subtasks)}[OTHER] == State.CRAWL

    def test_back_in_the_catalog_it_is_tried_again(self, world: World) -> None:
        gone = world.waiting()
        world.node("n1")
        before, world.context = world.context, without(SITE)
        turn(world)
        world.context = before
        world.do(manual.retry, gone)
        assert turn(world) == [SITE]

    def test_explain_changes_nothing(self, world: World) -> None:
        gone = world.waiting()
        world.node("n1")
        world.context = without(SITE)
        with world.store.begin() as tx:
            assert sweeps.preview(tx, world.context).assignments == ()
        assert world.state(gone) is State.WAIT

    def test_the_next_chunk_waits_for_the_site_to_come_back(self, world: World) -> None:
        first, *_ = world.add("特仑苏", chunks=(True, False))
        world.sweep(sweeps.admit)
        lease, work = world.begin(first)
        world.read_results(lease, work.targets[0], [], more=True)
        world.close(lease)
        before, world.context = world.context, without(SITE)
        world.sweep(sweeps.wake)
        assert world.state(first) is State.MANUAL
        assert world.subtask(first).reason == "unknown_site"
        world.context = before
        world.do(manual.retry, first)
        lease, work = world.begin(first)
        assert work.targets == ()
        world.close(lease)
        world.sweep(sweeps.wake)
        assert world.state(first) is State.DONE
        (second,) = [row.id for row in world.rows(subtasks) if row.chunk == 2]
        (url,) = world.targets(second)
        assert "pn=10" in url

    def test_what_has_no_next_chunk_is_done_all_the_same(self, world: World) -> None:
        first = world.waiting()
        lease, work = world.begin(first)
        world.read_results(lease, work.targets[0], [], more=True)
        world.close(lease)
        world.context = without(SITE)
        world.sweep(sweeps.wake)
        assert world.state(first) is State.DONE

    def test_what_failed_there_is_set_aside_too(self, world: World) -> None:
        lease, _ = world.begin(world.waiting())
        world.node("n1")
        world.context = without(SITE)
        world.pass_s(60)
        world.sweep(recalling.recall)
        world.node("n1")
        turn(world)
        assert world.state(lease.subtask_id) is State.MANUAL


class TestNodesWithAnotherCatalog:
    def register(self, world: World, name: str, entries: dict[str, str]) -> None:
        world.do(nodes.register, nodes.Node(name, frozenset(Kind), 4), entries)

    def test_they_are_given_only_what_they_know(self, world: World) -> None:
        world.add("特仑苏", sites=(SITE, OTHER))
        entries = entries_of(CATALOG)
        self.register(world, "n1", {**entries, SITE: "0" * 16})
        assert turn(world) == [OTHER]
        self.register(world, "n2", entries)
        world.pass_s(1)
        assert turn(world) == [SITE]
        assert {row.site: row.node for row in world.rows(attempts)} == {SITE: "n2", OTHER: "n1"}
        assert {row.entry for row in world.rows(attempts)} == {entries[SITE], entries[OTHER]}

    def test_a_node_that_was_updated_is_given_it_again(self, world: World) -> None:
        world.waiting()
        entries = entries_of(CATALOG)
        self.register(world, "n1", {name: of for name, of in entries.items() if name != SITE})
        assert turn(world) == []
        self.register(world, "n1", entries)
        world.pass_s(1)
        assert turn(world) == [SITE]

    def test_an_entry_changes_with_its_engine_its_rules_and_the_limits(self) -> None:
        before = entries_of(CATALOG)
        limits = CATALOG.limits.model_copy(update={"total_per_s": 0.5})
        engine = CATALOG.engine_of(SITE).model_copy(update={"max_hits": 7})
        engines = {**CATALOG.engines, CATALOG.sites[SITE].engine: engine}
        assert entries_of(CATALOG.model_copy(update={"limits": limits}))[SITE] != before[SITE]
        assert entries_of(CATALOG.model_copy(update={"engines": engines}))[SITE] != before[SITE]
        assert entries_of(CATALOG) == before
        assert catalog_hash(before) == catalog_hash(dict(reversed(before.items())))


class TestNodesWithoutABrowser:
    SCRIPTED = CATALOG.model_copy(
        update={
            "sites": {**CATALOG.sites, SITE: CATALOG.sites[SITE].model_copy(update={"render": "browser"})}
        }
    )
    SILENT = timedelta(seconds=30)

    def register(self, world: World, name: str, entries: dict[str, str]) -> None:
        world.do(nodes.register, nodes.Node(name, frozenset(Kind), 4), entries)

    def test_pages_made_by_script_go_only_to_nodes_with_one(self, world: World) -> None:
        loop = LoopSettings()
        world.context = Context(
            self.SCRIPTED, loop, HostCatalog(self.SCRIPTED), Random(0), SchedulerState(loop.strategy)
        )
        world.add("特仑苏", sites=(SITE, OTHER))
        assert not world.do(nodes.lacks_browser, self.SILENT), "nobody has told yet"
        self.register(world, "n1", entries_without_browser(self.SCRIPTED))
        assert world.do(nodes.lacks_browser, self.SILENT)
        assert turn(world) == [OTHER]
        self.register(world, "n2", entries_of(self.SCRIPTED))
        assert not world.do(nodes.lacks_browser, self.SILENT)
        world.pass_s(1)
        assert turn(world) == [SITE]
        assert {row.site: row.node for row in world.rows(attempts)} == {SITE: "n2", OTHER: "n1"}
        assert world.look(nodes.count_unrendered) == {"n1": 1}
        world.pass_s(60)
        self.register(world, "n1", entries_without_browser(self.SCRIPTED))
        assert world.do(nodes.lacks_browser, self.SILENT), "the only node with one is silent"


class TestTakenBack:
    def test_what_a_killed_process_had_under_way_goes_back_without_a_recall(self, world: World) -> None:
        one, two, three = (world.waiting(name) for name in ("特仑苏", "早餐奶", "纯牛奶"))
        begun, _ = world.begin(one)
        world.progress(begun, Counters(offered=4, tried=2))
        world.grant(two)
        others, _ = world.begin(three, "n2")
        assert world.do(release_leases, "n1", "its process was killed") == 2
        assert [world.state(i) for i in (one, two, three)] == [State.WAIT, State.WAIT, State.CRAWL]
        assert {row.recalls for row in world.rows(subtasks)} == {0}
        assert not world.subtask(one).failed_on
        assert [row.outcome for row in world.rows(attempts)] == ["released", "released", None]
        assert not world.progress(begun, Counters())
        assert world.do(release_leases, None, "its run was killed") == 1
        assert not world.progress(others, Counters())


def test_a_node_of_another_version_ends_no_turn(world: World) -> None:
    world.waiting()
    world.node("n1")
    world.node("n2")
    with world.store.begin() as tx:
        newer = {"kinds": ["meta", "video"], "parameters": {"new": 1}}
        tx.engine_connection.execute(update(node_rows).where(node_rows.c.name == "n1").values(newer))
    assert turn(world) == [SITE]
    assert {row.name: row.kinds for row in world.look(nodes.list_nodes)}["n1"] == {Kind.META}
