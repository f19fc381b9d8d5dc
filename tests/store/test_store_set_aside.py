"""What no sweep can do anything with is set aside for a person, and holds up nothing else."""

from datetime import timedelta

import pytest
from world import CATALOG, SITE, context_of

from splitter.catalog.entries import entries_of, entries_without_browser
from splitter.catalog.names import Kind
from tasks.domain.states import State
from tasks.jobs import sweeps
from tasks.jobs.ticks import tick
from tasks.store.queue import manual, nodes
from tasks.store.sql.tables import attempts, subtasks

OTHER = "315ok.com"
WITHOUT_SITE = CATALOG.model_copy(update={"sites": {n: s for n, s in CATALOG.sites.items() if n != SITE}})
SCRIPTED = CATALOG.model_copy(
    update={"sites": {**CATALOG.sites, SITE: CATALOG.sites[SITE].model_copy(update={"render": "browser"})}}
)
SILENT = timedelta(seconds=30)


def turn(world):
    """The sites of the leases that a turn gives."""
    return [lease.site for lease in world.do(tick, world.context, ("turn",))]


def register(world, name, entries):
    world.do(nodes.register, nodes.Node(name, frozenset(Kind), 4), entries)


def shows_more(world, **named):
    """A subtask whose result page showed that there is more; its attempt has ended."""
    lease, work = world.begin(world.waiting(**named))
    world.read_results(lease, work.targets[0], [], more=True)
    world.close(lease)
    return lease.subtask_id


def test_work_of_a_site_that_left_the_catalog_waits_for_a_person_who_is_told_what_to_do(world):
    gone, *_ = world.add("特仑苏", sites=(SITE, OTHER))
    world.node("n1")
    world.context = context_of(WITHOUT_SITE)
    world.admit()
    assert OTHER in {one.subtask.site for one in world.sweep(sweeps.preview).assignments}
    assert world.state(gone) is State.WAIT, "`explain` changes nothing"
    assert turn(world) == [OTHER]
    (row,) = world.look(manual.list_manual)
    assert (row.subtask_id, row.reason, world.state(gone)) == (gone, "unknown_site", State.MANUAL)
    assert SITE in row.why
    assert "sites.yaml" in row.suggestion


def test_the_next_chunk_waits_for_the_site_to_come_back(world):
    first = shows_more(world, chunks=(True, False))
    before, world.context = world.context, context_of(WITHOUT_SITE)
    world.wake()
    assert world.state(first) is State.MANUAL
    assert world.subtask(first).reason == "unknown_site"
    world.context = before
    world.do(manual.retry, first)
    lease, work = world.begin(first)
    assert work.targets == ()
    world.close(lease)
    world.wake()
    assert world.state(first) is State.DONE
    (second,) = world.rows(subtasks, subtasks.c.chunk == 2)
    (url,) = world.targets(second.id)
    assert "pn=10" in url


def test_what_has_no_next_chunk_is_done_all_the_same(world):
    first = shows_more(world)
    world.context = context_of(WITHOUT_SITE)
    world.wake()
    assert world.state(first) is State.DONE


@pytest.mark.parametrize(
    ("catalog", "of_n1"),
    [
        (CATALOG, {**entries_of(CATALOG), SITE: "0" * 16}),
        (CATALOG, {name: of for name, of in entries_of(CATALOG).items() if name != SITE}),
        (SCRIPTED, entries_without_browser(SCRIPTED)),
    ],
    ids=["otherwise", "lacking", "no browser"],
)
def test_a_node_is_given_only_sites_that_its_catalog_has_as_the_scheduler_has_them(world, catalog, of_n1):
    world.context = context_of(catalog)
    world.add("特仑苏", sites=(SITE, OTHER))
    register(world, "n1", of_n1)
    assert turn(world) == [OTHER]
    register(world, "n1", entries_of(catalog))
    world.pass_s(1)
    assert turn(world) == [SITE], "it was updated"
    assert {row.entry for row in world.rows(attempts)} == {
        entries_of(catalog)[site] for site in (SITE, OTHER)
    }


def test_the_run_is_told_if_no_live_node_has_a_browser(world):
    assert world.do(nodes.count_browsers, SILENT) == (0, 0)
    register(world, "n1", entries_without_browser(SCRIPTED))
    assert world.do(nodes.count_browsers, SILENT) == (1, 0)
    register(world, "n2", entries_of(SCRIPTED))
    assert world.do(nodes.count_browsers, SILENT) == (2, 1)
    assert world.look(nodes.count_unrendered) == {"n1": 1}
    world.pass_s(60)
    register(world, "n1", entries_without_browser(SCRIPTED))
    assert world.do(nodes.count_browsers, SILENT) == (1, 0), "the only node with one is silent"


def test_a_node_of_another_version_ends_no_turn(world):
    world.waiting()
    world.node("n1")
    world.node("n2")
    kinds, parameters = ["meta", "video"], {"new": 1}
    change = "UPDATE nodes SET kinds = :kinds, parameters = :parameters WHERE name = 'n1'"
    world.run(change, kinds=kinds, parameters=parameters)
    assert turn(world) == [SITE]
    assert {row.name: row.kinds for row in world.look(nodes.list_nodes)}["n1"] == {Kind.META}
