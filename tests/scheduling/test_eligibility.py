import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.domain.facts import HostFacts, NodeFacts, SubtaskFacts
from tasks.scheduling import eligibility

NAMES = ("n1", "n2", "n3")
META, MICROBLOG = frozenset({"meta"}), frozenset({"microblog"})
some_names = st.frozensets(st.sampled_from(NAMES))


def nodes_of(kinds):
    return {name: NodeFacts(name, of, 0, 1) for name, of in kinds.items()}


def subtask(**more):
    return SubtaskFacts(id=1, site="a", kind="meta", hosts=("engine", "a"), left=20, priority=0, **more)


@given(
    failed_on=st.lists(st.sampled_from(NAMES), unique=True).map(tuple),
    resting=st.dictionaries(st.sampled_from(["engine", "a"]), some_names),
    kinds=st.dictionaries(st.sampled_from(NAMES), st.sampled_from([META, MICROBLOG, META | MICROBLOG])),
    assigned=st.none() | st.sampled_from(NAMES),
)
def test_the_rules(failed_on, resting, kinds, assigned):
    nodes, hosts = (
        nodes_of(kinds),
        {host: HostFacts(host=host, room=0, resting=names) for host, names in resting.items()},
    )
    one = subtask(failed_on=failed_on, assigned=assigned)
    allowed = [
        name
        for name, of in kinds.items()
        if "meta" in of and not any(name in rests for rests in resting.values())
    ]
    permitted = [name for name in allowed if assigned in (None, name)]
    expected = [name for name in permitted if name not in failed_on]
    if assigned is not None:
        expected = permitted
    elif not expected:
        expected = [name for name in failed_on if name in permitted][:1]
    assert eligibility.eligible(one, nodes, hosts) == expected
    for name in NAMES:
        assert eligibility.may_take(one, name, nodes, hosts) == (name in expected)
        assert (eligibility.why_not(one, name, nodes, hosts) is None) == (name in expected)
    if expected and expected[0] in failed_on:
        assert eligibility.forgiven(one, nodes, hosts) == expected[0]
    (row,) = eligibility.eligible_for_sites([one], nodes, hosts).tolist()
    assert [name for name, may in zip(nodes, row, strict=True) if may] == allowed


def test_no_sites_and_no_nodes():
    assert eligibility.eligible_for_sites([], nodes_of({"n1": META}), {}).shape == (0, 1)
    assert eligibility.eligible_for_sites([subtask()], {}, {}).shape == (1, 0)


@pytest.mark.parametrize(
    ("name", "more", "why"),
    [
        ("n9", {}, "is not alive or is drained"),
        ("n2", {}, "does not crawl meta sites"),
        ("n1", {"assigned": "n3"}, "a person asked for n3"),
        ("n3", {}, "engine refuses its address at present"),
        ("n1", {"failed_on": ("n1",)}, "failed this subtask before"),
    ],
)
def test_why_not(name, more, why):
    nodes = nodes_of({"n1": META, "n2": MICROBLOG, "n3": META, "n4": META})
    hosts = {"engine": HostFacts(host="engine", room=9, resting=frozenset({"n3"}))}
    assert str(eligibility.why_not(subtask(**more), name, nodes, hosts)) == why
