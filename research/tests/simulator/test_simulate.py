"""The simulator against what an attempt costs by docs/simulator.md, and the rules of the loop."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from research.simulator.outcome import Options
from research.simulator.simulate import simulate
from splitter.errors import InputError
from tasks.fetching.permits import SPACING_MARGIN

PLAIN = Options(oracle=False, modification=False, timeline=True)
HEAD = "until_done: true\nquota: {min: 1, max: 1000000}\n"


def one(pair="", work="products: 1, hits: {dist: constant, mean: 10}", node="", site="", head=HEAD):
    return (
        f"{head}nodes: [{{name: a, slots: 1{node}}}]\nsites: [{{name: x, overhead_s: 2{site}}}]\n"
        f"pairs: [{{seconds_per_page: 3{pair}}}]\nwork: {{{work}}}"
    )


def run(scenario, text, strategy="random", seed=1, options=PLAIN):
    return simulate(scenario(text), strategy, seed, options)


def test_an_attempt_takes_its_overhead_and_its_pages(scenario):
    done = run(scenario, one())
    assert (done.makespan_s, done.pages_collected, done.pages_found, done.attempts) == (32.0, 10, 10, 1)
    assert done.goodput_pages_per_s == pytest.approx(10 / 32)
    assert done.pairs["x", "a"].active_s == 32.0


def test_a_page_has_the_rates_in_force_when_it_starts(scenario):
    text = one().replace("seconds_per_page: 3}", "seconds_per_page: 3}, {from_s: 9, seconds_per_page: 1}")
    assert run(scenario, text).makespan_s == 2 + 3 * 3 + 7 * 1  # starts at 2, 5, 8, then at 11, 12, ...


def test_what_is_missed_is_left_to_follow_ups_and_then_given_up(scenario):
    done = run(scenario, one(", completion: 0"), options=replace(PLAIN, recall=True))
    assert (done.pages_collected, done.given_up, done.attempts, done.manual) == (0, 10, 3, 0)
    assert done.recalls == 2  # nothing stored, twice; the third time nothing is left
    assert done.pairs["x", "a"].tried == 30


def test_the_quota_leaves_the_rest_to_a_follow_up(scenario):
    done = run(scenario, one(head="until_done: true\nquota: {min: 4, max: 4}\n"))
    assert (done.attempts, done.makespan_s, done.pairs["x", "a"].offered) == (3, 36.0, 10)


def test_the_budget_ends_an_attempt_after_the_page_under_way(scenario):
    head = "until_done: true\nbudget_s: {min: 9, max: 9}\n"
    done = run(scenario, one(head=head))
    assert done.attempts == 4  # pages begin while 2 + 3 n < 9: three at a time
    assert done.makespan_s == 4 * 2 + 10 * 3


def test_a_failure_costs_the_overhead_and_five_recalls_lead_to_a_person(scenario):
    done = run(scenario, one(", fail: 1"))
    assert (done.recalls, done.manual, done.attempts, done.pages_collected) == (5, 1, 6, 0)
    assert done.pairs["x", "a"].active_s == 12.0
    alone = run(scenario, one(", fail: 1"), options=replace(PLAIN, recall=False))
    assert (alone.recalls, alone.manual, alone.attempts) == (0, 1, 1)


def test_a_hanging_attempt_holds_its_slot_for_a_minute(scenario):
    done = run(scenario, one(", hang: 1"))
    assert (done.makespan_s, done.recalls, done.manual) == (360.0, 5, 1)
    assert done.pairs["x", "a"].silent == 6


def test_a_dying_node_keeps_what_it_collected_and_its_work_goes_on_a_minute_later(scenario):
    text = one(node=", dies_at_s: 12, back_at_s: 1000")
    done = run(scenario, text)
    # three pages by 11 s; recalled at 72 s, when the node is known to be gone; back at 1000 s for the other seven
    assert done.pages_collected == 10
    assert (done.recalls, done.makespan_s) == (1, 1000 + 2 + 21)


def test_a_dead_node_is_given_work_until_it_is_known_to_be_silent(scenario):
    work = "products: 2, hits: {dist: constant, mean: 1}, arrive_every_s: 30"
    done = run(scenario, one(node=", dies_at_s: 20, back_at_s: 500", work=work))
    assert (done.recalls, done.pages_collected) == (1, 2)
    assert done.pairs["x", "a"].silent == 1


def test_limits_space_the_starts_of_pages(scenario):
    done = run(scenario, one(site=", per_address_per_s: 0.25"))
    spacing_s = SPACING_MARGIN / 0.25
    assert done.makespan_s == pytest.approx(2 + 9 * spacing_s + 3)
    assert done.pairs["x", "a"].active_s == pytest.approx(32), "waiting is no active time"
    two = run(
        scenario,
        one(site=", total_per_s: 0.25", work="products: 2, hits: {dist: constant, mean: 5}").replace(
            "slots: 1", "slots: 2"
        ),
    )
    assert two.makespan_s >= 2 + 9 * 4 + 3


def test_what_waits_for_a_permit_holds_no_slot(scenario):
    text = (
        "duration_s: 100\nnodes: [{name: a, slots: 1}]\nsites: [{name: x, per_address_per_s: 0.1}, {name: y}]\n"
        "pairs: [{seconds_per_page: 1}]\nwork: {products: 50, hits: {dist: constant, mean: 10}}"
    )
    done = run(scenario, text)
    assert done.pairs["x", "a"].tried == pytest.approx(10, abs=1)
    assert done.pairs["y", "a"].tried >= 80, "the node crawls y while it waits for permits of x"
    assert done.pages_collected <= 100, "but no more than a slot can do"


def test_faults_slow_a_host_down_and_other_misses_do_not(scenario):
    def tried(fault):
        text = one(
            f", completion: 0.2, fault: {fault}", site=", per_address_per_s: 1", head="duration_s: 300\n"
        )
        return run(scenario, text.replace("seconds_per_page: 3", "seconds_per_page: 0.1")
                   .replace("mean: 10", "mean: 10000")).pairs["x", "a"].tried  # fmt: skip

    assert tried(0.0) > 250
    assert tried(1.0) < 0.3 * tried(0.0)


def test_result_pages_are_read_once_before_the_pages_and_by_their_engines_limits(scenario):
    engine = "engines: [{name: e, seconds_per_page: 2, total_per_s: 0.1}]\nquota: {min: 25, max: 25}\n"
    work = "products: 1, hits: {dist: constant, mean: 30}, hits_per_result_page: 10"
    done = run(scenario, one(site=", engine: e", work=work, head="until_done: true\n" + engine))
    # three result pages 10.2 s apart, 25 pages; then an attempt that has only five pages to take
    assert done.attempts == 2
    assert done.makespan_s == pytest.approx((2 + 2 * 10.2 + 2 + 25 * 3) + (2 + 5 * 3))


def test_after_so_many_pages_nothing_is_collected_and_the_host_rests(scenario):
    block = ", block_after_pages: 4, block_window_s: 100, block_for_s: 40"
    text = one(block, head="duration_s: 45\n")
    assert run(scenario, text).pages_collected == 4
    done = run(scenario, one(block, work="products: 30, hits: {dist: constant, mean: 2}"))
    assert done.manual == 0
    assert done.pairs["x", "a"].failed >= 1  # blocked: a rest of minutes, then one attempt probes
    assert done.makespan_s > 300


def test_the_end_cuts_off_and_ended_pages_stay(scenario):
    done = run(scenario, one(head="duration_s: 10\n"))
    assert (done.pages_collected, done.makespan_s, done.settled) == (2, 10.0, False)


def test_work_no_node_may_do_ends_unsettled(scenario):
    done = run(scenario, one(site=", kind: microblog"))
    assert (done.settled, done.pages_collected, done.oracle_ratio) == (False, 0, None)


def test_an_unknown_strategy_is_told(scenario):
    with pytest.raises(InputError, match="there is feedback"):
        run(scenario, one(), strategy="none")


MIXED = """
duration_s: 600
nodes: [{name: a, slots: 2}, {name: b, slots: 1, dies_at_s: 200, back_at_s: 300}]
sites: [{name: x, overhead_s: 1}, {name: y, total_per_s: 1.5}, {name: z}]
pairs:
  - {seconds_per_page: 0.7, completion: 0.8, fail: 0.05, hang: 0.02}
  - {node: a, site: x, from_s: 250, completion: 0.3}
  - {node: b, site: z, block_after_pages: 9, block_window_s: 20, block_for_s: 60}
work: {products: 60, hits: {dist: lognormal, mean: 12, sigma: 0.7}, chunk_pages: 10}
"""


@given(seed=st.integers(0, 10_000), strategy=st.sampled_from(["random", "feedback"]))
@settings(max_examples=5, deadline=None)
def test_the_same_seed_gives_the_same_figures_and_pages_add_up(seed, strategy):
    from research.tests.simulator.conftest import made

    options = Options(oracle=False, timeline=True)
    first, again = (simulate(made(MIXED), strategy, seed, options) for _ in range(2))
    same = ("decision_us_p50", "decision_us_p99")
    assert {k: getattr(first, k) for k in first.__dataclass_fields__ if k not in same} == {
        k: getattr(again, k) for k in again.__dataclass_fields__ if k not in same
    }
    assert first.pages_collected == sum(p.collected for p in first.pairs.values())
    assert first.pages_collected == sum(w.stats.collected for w in first.windows)
    assert first.pages_collected + first.given_up <= first.pages_found
    for pair in first.pairs.values():
        assert pair.collected <= pair.tried <= pair.offered


@given(seed=st.integers(0, 10_000))
@settings(max_examples=5, deadline=None)
def test_when_all_is_done_every_page_is_accounted_for(seed):
    from research.tests.simulator.conftest import made

    done = simulate(
        made(MIXED.replace("duration_s: 600", "until_done: true")), "random", seed, Options(oracle=False)
    )
    assert done.settled
    assert done.pages_collected + done.given_up + sum(done.manual_pages.values()) == done.pages_found
