"""Every interleaving of two workers and one sweeper over a short history keeps every invariant, on both databases.

Each actor has its steps in its own order; all orders of the steps of all three are played, each from the same scene.
SQLite plays all of them, PostgreSQL `POSTGRES_PLAYS` of each story.
"""

from collections import Counter

import pytest
from contents import Snapshot
from world import World, hit

from tasks.domain.attempt_end import Counters
from tasks.domain.failures import FailureReason
from tasks.domain.states import State

POSTGRES_PLAYS = 12
"""Number of histories of each story that PostgreSQL plays, evenly chosen."""


class Actors:
    """Two workers that may hold a lease of one subtask, one after the other, and the sweeper between them."""

    def __init__(self, store):
        self.world = World(store)
        for name in ("n1", "n2"):
            self.world.node(name)
        self.one = self.world.waiting()
        self.began = self.world.now
        self.begin_again()

    def begin_again(self):
        """Forget what was done; the store is put back by others."""
        self.world.now = self.began
        self.leases, self.read = {}, {}

    def play(self, step):
        """Play "ACTOR STEP": a step of the sweeper, or of a worker that has a lease (or none, but a hit to fetch)."""
        actor, _, does = step.partition(" ")
        if does in SWEEPS:
            SWEEPS[does](self)
        elif does == "allocate":
            self.allocate(actor)
        elif actor in self.leases:
            STEPS[does](self, actor, self.leases[actor])

    def allocate(self, node):
        lease = self.world.grant(self.one, node) if self.world.state(self.one) is State.WAIT else None
        if lease is not None:
            self.leases[node] = lease

    def begin(self, node, lease):
        if (work := self.world.start(lease)) is not None:
            hits = [one for one in work.targets if one.kind == "hit"]
            for one in work.targets:
                if one.kind == "result" and (
                    read := self.world.read_results(lease, one, [hit("1"), hit("2")])
                ):
                    hits.extend(read.todo)
            self.read[node] = hits

    def page(self, node, lease):
        """Store the first page it was to fetch; it comes late if the lease is lost."""
        if self.read.get(node):
            self.world.save(lease, self.read[node].pop(0))

    def refuse(self, node, lease):
        if self.read.get(node):
            self.world.end_target(lease, self.read[node].pop(0), "refused", "not_found")

    def lose(self):
        """A minute passes without a sign of life, and the sweep takes back what ran out."""
        self.world.pass_s(61)
        self.world.recall()

    def cancel(self):
        if self.world.state(self.one) not in (State.DONE, State.CANCELLED):
            self.world.cancel(self.one)


STEPS = {
    "begin": Actors.begin,
    "page": Actors.page,
    "refuse": Actors.refuse,
    "progress": lambda its, _, lease: its.world.progress(lease, Counters(offered=2, tried=1, requests=2)),
    "close": lambda its, _, lease: its.world.close(
        lease, Counters(offered=2, tried=2, requests=3, active_s=0.5)
    ),
    "fail": lambda its, _, lease: its.world.close(lease, Counters(offered=2), reason=FailureReason.BLOCKED),
    "give_back": lambda its, _, lease: its.world.interrupt(lease, Counters(offered=1, tried=1), "shutdown"),
    "release": lambda its, _, lease: its.world.release(lease),
}
SWEEPS = {
    "lose": Actors.lose,
    "cancel": Actors.cancel,
    "recall": lambda its: its.world.recall(),
    "wake": lambda its: its.world.wake(),
}
STORIES = {
    "a lost lease and a late page": ("allocate begin page close", "allocate close", "lose wake"),
    "a failure, given back": ("allocate begin fail", "allocate begin give_back", "recall wake"),
    "released and cancelled": ("allocate release begin", "allocate begin", "cancel wake"),
    "progress of a lost lease": ("allocate begin progress refuse", "allocate begin", "lose recall"),
}
"""By name: the steps of the first worker, of the second, and of the sweeper."""


def interleavings(*histories):
    """Yield every order of the steps of all, each keeping its own order."""
    if not any(histories):
        yield ()
    for place, history in enumerate(histories):
        if history:
            rest = (*histories[:place], history[1:], *histories[place + 1 :])
            yield from ((history[0], *behind) for behind in interleavings(*rest))


def test_every_order_comes_once():
    found = list(interleavings("ab", "c", "d"))
    assert len(found) == len(set(found)) == 12
    assert all(one.index("a") < one.index("b") for one in found)


@pytest.mark.parametrize("story", STORIES)
@pytest.mark.slow
def test_every_interleaving_keeps_every_invariant(story, store):
    actors = Actors(store)
    names = zip(("n1", "n2", "sweep"), STORIES[story], strict=True)
    every = list(interleavings(*([f"{name} {step}" for step in steps.split()] for name, steps in names)))
    plays = every if store.is_sqlite else every[:: -(-len(every) // POSTGRES_PLAYS)]
    scene, ends = Snapshot(store), Counter()
    for history in plays:
        scene.restore(store)
        actors.begin_again()
        for step in history:
            actors.play(step)
        violations = actors.world.verification().violations
        assert violations == (), f"{' > '.join(history)}: {violations}"
        outcomes = [one.outcome for one in actors.world.attempts(actors.one)]
        ends[actors.world.state(actors.one).value, *outcomes] += 1
    print(f"{story}: {len(plays)} of {len(every)} histories; ends {dict(ends)}")
    assert len(ends) > 1, "the order of the steps made no difference"
