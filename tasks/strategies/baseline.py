"""Allocation switched off: what the feedback strategy is compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from tasks.model import HostView, NodeView, PairStats, SubtaskView
from tasks.strategies.decision import Allocation, AllocationSettings, Assignment
from tasks.strategies.round import Round


def allocate_randomly(
    subtasks: Sequence[SubtaskView],
    nodes: Sequence[NodeView],
    hosts: Mapping[str, HostView],
    stats: Mapping[tuple[str, str], PairStats],
    settings: AllocationSettings,  # noqa: ARG001 - the signature every strategy has
    rng: Random,
) -> Allocation:
    """In queue order, each subtask to one of the nodes that may run it and have a free slot, all equally
    likely.

    Kind, rests, failures, requests by a person and capacity count as everywhere (`tasks.strategies.round`);
    what was observed does not. Arguments: see `AllocationStrategy`.
    """
    play = Round(subtasks, nodes, hosts, stats)
    assignments: list[Assignment] = []
    slots = sum(play.free.values())
    for level in play.levels:
        for group in level.order:
            if not slots:
                break
            open_nodes = [node.name for node in group.eligible if play.takes(group, node.name)]
            if not open_nodes:
                continue
            chosen = rng.choice(open_nodes)
            notes = dict.fromkeys(open_nodes, "might have been drawn") | {chosen: "drawn at random"}
            candidates = play.candidates(group, {}, notes)
            forgiven = chosen if chosen == group.forgiven else None
            assignments.append(Assignment(play.take(group, chosen), chosen, None, forgiven, candidates))
            slots -= 1
    return Allocation(tuple(assignments), play.left_over({}))
