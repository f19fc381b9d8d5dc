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
from tasks.jobs import recalling, sweeps
from tasks.store.queue import attempts

POSTGRES_PLAYS = 12
"""Number of histories of each story that PostgreSQL plays, evenly chosen."""


class Actors:
    """Two workers that may hold a lease of one subtask, one after the other, and the sweeper between them."""

    def __init__(self, store):
        self.world = World(store)
        for name in ("n1", "n2"):
            self.world.node(name)
        self.one = self.world.waiting()
        self.leases = {}
        self.read = {}

    def begin_anew(self, now):
        """Forget what was done; the store is put back by others."""
        self.world.now = now
        self.leases, self.read = {}, {}

    def play(self, step):
        """A step of a worker is its name and what it does; one that has nothing to do it with does nothing."""
        actor, _, does = step.partition(" ")
        _STEPS[does](self, actor)

    def allocate(self, node):
        lease = self.world.grant(self.one, node) if self.world.state(self.one) is State.WAIT else None
        if lease is not None:
            self.leases[node] = lease

    def begin(self, node):
        if node in self.leases and (work := self.world.start(self.leases[node])) is not None:
            results = [one for one in work.targets if one.kind == "result"]
            hits = [one for one in work.targets if one.kind == "hit"]
            self.read[node] = hits
            if results and (
                read := self.world.read_results(self.leases[node], results[0], [hit("1"), hit("2")])
            ):
                self.read[node] = (*hits, *read.todo)

    def page(self, node):
        """The first page it was to fetch; it comes late where the lease is lost."""
        if self.read.get(node):
            first, *rest = self.read[node]
            self.world.save(self.leases[node], first)
            self.read[node] = rest

    def refuse(self, node):
        if self.read.get(node):
            first, *rest = self.read[node]
            self.world.end_target(self.leases[node], first, "refused", "not_found")
            self.read[node] = rest

    def progress(self, node):
        if node in self.leases:
            self.world.progress(self.leases[node], Counters(offered=2, tried=1, requests=2))

    def close(self, node):
        if node in self.leases:
            self.world.close(self.leases[node], Counters(offered=2, tried=2, requests=3, active_s=0.5))

    def fail(self, node):
        if node in self.leases:
            self.world.close(self.leases[node], Counters(offered=2), reason=FailureReason.BLOCKED)

    def give_back(self, node):
        if node in self.leases:
            self.world.interrupt(self.leases[node], Counters(offered=1, tried=1), "shutdown")

    def release(self, node):
        if node in self.leases:
            self.world.do(attempts.release, {self.leases[node]: "drained"})

    def lose(self, _):
        """A minute passes without a sign of life, and the sweep takes back what ran out."""
        self.world.pass_s(61)
        self.world.sweep(recalling.recall)

    def recall(self, _):
        self.world.sweep(recalling.recall)

    def wake(self, _):
        self.world.sweep(sweeps.wake)

    def cancel(self, _):
        if self.world.state(self.one) not in (State.DONE, State.CANCELLED):
            self.world.do(attempts.cancel, self.one, "not wanted")


_STEPS = {
    "allocate": Actors.allocate,
    "begin": Actors.begin,
    "page": Actors.page,
    "refuse": Actors.refuse,
    "progress": Actors.progress,
    "close": Actors.close,
    "fail": Actors.fail,
    "give_back": Actors.give_back,
    "release": Actors.release,
    "lose": Actors.lose,
    "recall": Actors.recall,
    "wake": Actors.wake,
    "cancel": Actors.cancel,
}

STORIES = {
    "a lost lease and a late page": (
        ("allocate", "begin", "page", "close"),
        ("allocate", "close"),
        ("lose", "wake"),
    ),
    "a failure, given back": (
        ("allocate", "begin", "fail"),
        ("allocate", "begin", "give_back"),
        ("recall", "wake"),
    ),
    "released and cancelled": (
        ("allocate", "release", "begin"),
        ("allocate", "begin"),
        ("cancel", "wake"),
    ),
    "progress of a lost lease": (
        ("allocate", "begin", "progress", "refuse"),
        ("allocate", "begin"),
        ("lose", "recall"),
    ),
}
"""By name: the steps of the first worker, of the second, and of the sweeper."""


def interleavings(first, second, third):
    """Every order of the steps of all, each keeping its own order."""
    if not (first or second or third):
        yield ()
        return
    for at, its in enumerate((first, second, third)):
        if its:
            rest = [
                (*one[1:],) if place == at else tuple(one) for place, one in enumerate((first, second, third))
            ]
            for behind in interleavings(*rest):
                yield (its[0], *behind)


def _named(story):
    actors = zip(("n1", "n2", "sweep"), STORIES[story], strict=True)
    return list(interleavings(*([f"{name} {step}" for step in steps] for name, steps in actors)))


def test_every_order_comes_once():
    found = list(interleavings(("a", "b"), ("c",), ("d",)))
    assert len(found) == len(set(found)) == 12
    assert all(one.index("a") < one.index("b") for one in found)


@pytest.mark.parametrize("story", STORIES)
@pytest.mark.slow
def test_every_interleaving_keeps_every_invariant(story, store):
    every = _named(story)
    plays = every if store.is_sqlite else every[:: -(-len(every) // POSTGRES_PLAYS)]
    actors = Actors(store)
    scene, began = Snapshot(store), actors.world.now
    ends = Counter()
    for history in plays:
        scene.restore(store)
        actors.begin_anew(began)
        for step in history:
            actors.play(step)
        violations = actors.world.verification().violations
        assert violations == (), f"{' > '.join(history)}: {violations}"
        outcomes = [one.outcome for one in actors.world.attempts(actors.one)]
        ends[actors.world.state(actors.one).value, *outcomes] += 1
    print(f"{story}: {len(plays)} of {len(every)} histories; ends {dict(ends)}")
    assert len(ends) > 1, "the order of the steps made no difference"
