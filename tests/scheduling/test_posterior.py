from dataclasses import replace
from math import exp, log

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from tasks.domain.pair_stats import PairStats
from tasks.scheduling import posterior as posteriors
from tasks.scheduling.posterior import Belief, posterior
from tasks.scheduling.statistics import Knowledge


def stats(*, attempts, completion=0.9, seconds=1.0, failed=0.0, silent=0.0, site="s", node="n"):
    """(site, node, sums): 20 pages an attempt; failed and silent attempts were offered theirs but tried none."""
    went = attempts - failed - silent
    tried = 20 * went
    active = attempts * posteriors.OVERHEAD_S + tried * seconds
    sums = PairStats(
        attempts=attempts,
        failed=failed,
        silent=silent,
        offered=20 * attempts,
        tried=tried,
        collected=completion * tried,
        active_s=active,
        lost_s=60 * silent,
    )
    return site, node, sums


def knowledge_of(*known):
    knowledge = Knowledge()
    for one in known:
        knowledge.put(*one, 0.0)
    return knowledge


def of_pair(*known, site="s", node="n", prior_s=None):
    return posterior(knowledge_of(*known), 0.0, [site], [node], prior_s)


def expected(*known, site="s", node="n"):
    """Posterior means of one pair, as plain numbers."""
    belief = of_pair(*known, site=site, node=node).mean()
    return Belief(*(float(np.squeeze(value)) for value in belief))


def rate(*known, pages=20.0):
    return of_pair(*known).mean().rate(0, 0, pages)


def test_nothing_known_gives_the_prior_means():
    belief = expected()
    assert belief.page_chance == pytest.approx(posteriors.PAGE_CHANCE)
    assert belief.seconds_per_page == pytest.approx(posteriors.SECONDS_PER_PAGE)
    assert belief.reach == pytest.approx(1 - posteriors.BAD_SHARE)
    assert belief.silent == pytest.approx(posteriors.BAD_SHARE * posteriors.SILENT_OF_BAD)


def test_much_data_outvotes_the_prior():
    belief = expected(stats(attempts=200, completion=0.4, seconds=2.5))
    assert belief.page_chance == pytest.approx(0.4, abs=0.02)
    assert belief.seconds_per_page == pytest.approx(2.5, abs=0.05)


def test_one_attempt_moves_a_pair_but_not_all_the_way():
    many = stats(attempts=100, completion=0.9, node="m")
    assert 0.2 < expected(many, stats(attempts=1, completion=0.0)).page_chance < 0.8


def test_where_pairs_differ_from_their_sites_and_nodes_a_prior_weighs_little():
    def weight(chances):
        known = [
            stats(attempts=40, completion=chance, site=f"s{i}", node=f"n{j}")
            for i, row in enumerate(chances)
            for j, chance in enumerate(row)
        ]
        new = posterior(knowledge_of(*known), 0.0, ["s0"], ["unknown"])
        return float((new.page_a + new.page_b)[0, 0])

    alike = [[0.9, 0.6, 0.3]] * 3
    crossed = [[0.95, 0.5, 0.1], [0.1, 0.95, 0.5], [0.5, 0.1, 0.95]]
    assert weight(alike) == posteriors.PRIOR_PAGES
    assert posteriors.LEAST_WEIGHT <= weight(crossed) < 2.0


def test_the_weight_of_a_prior_is_that_of_the_beta_that_chances_are_drawn_from():
    rng, drawn = np.random.default_rng(3), 2.0
    known = []
    for (i, j), chance in np.ndenumerate(rng.beta(0.6 * drawn, 0.4 * drawn, size=(30, 30))):
        one = PairStats(attempts=30, offered=30, tried=30, collected=rng.binomial(30, chance), active_s=30.0)
        known.append((f"s{i}", f"n{j}", one))
    new = posterior(knowledge_of(*known), 0.0, ["new"], ["unknown"])
    assert float((new.page_a + new.page_b)[0, 0]) == pytest.approx(drawn, rel=0.2)


def test_an_unknown_pair_starts_from_its_site_and_its_node():
    known = [
        stats(attempts=60, completion=0.9, site="good", node="m"),
        stats(attempts=60, completion=0.3, site="bad", node="m"),
        stats(attempts=60, seconds=4.0, site="other", node="slow"),
        stats(attempts=60, seconds=0.5, site="other", node="m"),
    ]
    assert expected(*known, site="good", node="new").page_chance > 0.8
    assert expected(*known, site="bad", node="new").page_chance < 0.5
    slow, swift = (expected(*known, site="good", node=name).seconds_per_page for name in ("slow", "new"))
    assert slow > 2 * swift


def test_a_prior_stands_for_what_is_not_known_of_a_pair():
    known = [stats(attempts=60, node=name, site=site) for name in "mn" for site in "st"][:3]
    prior_s = np.array([[7.0, np.nan], [7.0, 7.0]])
    belief = posterior(knowledge_of(*known), 0.0, ["s", "t"], ["m", "n"], prior_s).mean()
    plain = posterior(knowledge_of(*known), 0.0, ["s", "t"], ["m", "n"]).mean()
    assert belief.seconds_per_page[1, 1] == pytest.approx(7.0)
    assert belief.seconds_per_page[0, 0] == pytest.approx(1.0, abs=0.2)
    assert belief.seconds_per_page[0, 1] == plain.seconds_per_page[0, 1]
    assert np.array_equal(belief.page_chance, plain.page_chance)


def test_the_rate_is_the_stated_formula():
    one = [np.array([[value]]) for value in (0.8, 0.9, 0.05, 0.5, 1.0)]
    belief = Belief(*one, 60.0)
    formula = 0.8 * 0.9 * 20 / (1.0 + 0.9 * 20 * 0.5 + 0.05 * 60)
    assert belief.rate(0, 0, 20) == pytest.approx(formula)
    assert belief.rates(20.0).item() == pytest.approx(formula)
    assert belief.rates(np.array([[20.0]])).item() == pytest.approx(formula)


def test_failures_and_silence_lower_the_rate_silence_more():
    sound, failing, silent = (rate(stats(attempts=30, **bad)) for bad in ({}, {"failed": 10}, {"silent": 10}))
    assert sound > failing > silent


def test_failures_count_whether_their_hits_were_known_or_not():
    site, node, known = stats(attempts=40, failed=20)
    unknown = replace(known, offered=known.tried)
    assert rate((site, node, known)) == pytest.approx(rate((site, node, unknown)), rel=0.05)


def normal_scores(shape, seed):
    return np.random.default_rng(seed).standard_normal((3, *shape))


def drawn_often(found, count, seed=3):
    """A belief of one pair, its fields drawn so often along the axis of sites."""
    return found.draw(normal_scores((count, 1), seed))


def test_draws_lie_around_the_mean_and_narrow_with_data():
    def draws(attempts):
        found = of_pair(stats(attempts=attempts))
        return found.mean().rate(0, 0, 20), drawn_often(found, 2000).rates(20.0)

    few_mean, few = draws(1)
    many_mean, many = draws(100)
    assert few.mean() == pytest.approx(few_mean, rel=0.15)
    assert many.mean() == pytest.approx(many_mean, rel=0.02)
    assert many.std() < 0.3 * few.std()


def test_draws_are_distributed_as_the_posteriors_are():
    """Page chance and failures exactly; the logarithm of the seconds by its mean and variance."""
    found = of_pair(stats(attempts=3, completion=0.6, failed=1))
    drawn = drawn_often(found, 20_000)
    page = scipy.stats.beta(found.page_a.item(), found.page_b.item())
    bad = scipy.stats.beta(found.bad_a.item(), found.bad_b.item())
    assert scipy.stats.kstest(drawn.page_chance.ravel(), page.cdf).statistic < 0.012
    assert scipy.stats.kstest(drawn.silent.ravel() / found.silent_of_bad.item(), bad.cdf).statistic < 0.012
    seconds = scipy.stats.loggamma(found.seconds_shape.item())  # of 1 / s, but for the total
    logs = np.log(found.seconds_total.item() / drawn.seconds_per_page)
    assert logs.mean() == pytest.approx(seconds.mean(), abs=0.02)
    assert logs.var() == pytest.approx(seconds.var(), rel=0.05)


def test_a_score_of_zero_is_the_median_and_a_higher_one_draws_higher():
    found = of_pair(stats(attempts=3, completion=0.6, failed=1))
    low, middle, high = (found.draw(np.full((3, 1, 1), score)) for score in (-1.0, 0.0, 1.0))
    median = scipy.stats.beta(found.page_a.item(), found.page_b.item()).median()
    assert middle.page_chance.item() == pytest.approx(median, rel=1e-3)
    for name in ("page_chance", "silent", "seconds_per_page"):
        assert getattr(low, name) < getattr(middle, name) < getattr(high, name)


def test_the_quantiles_of_a_beta_are_those_of_scipy():
    rng = np.random.default_rng(8)
    a, b = 10 ** rng.uniform(-1.3, 3.0, (2, 90, 100))
    score = rng.uniform(-3.0, 3.0, (90, 100))
    wanted = scipy.stats.beta(a, b).ppf(scipy.stats.norm.cdf(score))
    assert np.abs(posteriors.beta_quantile(a, b, score) - wanted).max() < 0.006


@pytest.mark.parametrize("a", [1e-4, 0.1, 1.0, 30.0, 1e5])
@pytest.mark.parametrize("b", [1e-4, 1.0, 1e5])
def test_a_quantile_of_a_beta_is_a_chance_that_rises_with_its_score(a, b):
    scores = np.linspace(-5.0, 5.0, 101)
    found = posteriors.beta_quantile(np.full(101, a), np.full(101, b), scores)
    assert ((found >= 0.0) & (found <= 1.0)).all()
    assert (np.diff(found) >= -1e-12).all()
    assert found[0] < found[-1]


def test_no_pairs_have_no_quantiles():
    assert posteriors.beta_quantile(np.ones((0, 3)), np.ones((0, 3)), np.zeros((0, 3))).shape == (0, 3)


def test_each_pair_is_drawn_by_its_own_scores():
    known = [stats(attempts=3, site=site, node=name) for site in "st" for name in "mn"]
    found = posterior(knowledge_of(*known), 0.0, ["s", "t"], ["m", "n"])
    scores = normal_scores((2, 2), 5)
    before = found.draw(scores)
    scores[:, 1, 0] += 1.0
    after = found.draw(scores)
    for name in ("page_chance", "silent", "seconds_per_page"):
        moved = getattr(after, name) != getattr(before, name)
        assert moved.tolist() == [[False, False], [True, False]]


@pytest.mark.parametrize(("unknown", "field"), [(0, "page_chance"), (1, "silent"), (2, "seconds_per_page")])
def test_each_unknown_is_drawn_by_its_own_score(unknown, field):
    found = of_pair(stats(attempts=3))
    scores = np.zeros((3, 1, 1))
    middle = found.draw(scores)
    scores[unknown] = 1.0
    moved = found.draw(scores)
    changed = {
        name
        for name in ("page_chance", "silent", "seconds_per_page")
        if getattr(moved, name) != getattr(middle, name)
    }
    assert changed == {field}


shares = st.floats(0, 1)
some_stats = st.builds(
    lambda attempts, failed, silent, offered, tried, collected, active: {
        "attempts": attempts,
        "failed": attempts * failed,
        "silent": attempts * (1 - failed) * silent,
        "offered": attempts * offered,
        "tried": attempts * offered * tried,
        "collected": attempts * offered * tried * collected,
        "active_s": attempts * active,
    },
    st.floats(0.01, 1e4),
    shares,
    shares,
    st.floats(0, 1e3),
    shares,
    shares,
    st.floats(0, 1e4),
)
some_pairs = st.dictionaries(
    st.tuples(st.sampled_from("abc"), st.sampled_from("xyz")), some_stats, max_size=9
).map(lambda by_pair: [(*pair, PairStats(**sums)) for pair, sums in by_pair.items()])


@given(known=some_pairs, seed=st.integers(0, 100), wild=st.sampled_from([1.0, 3.0]))
def test_any_statistics_give_finite_rates_of_possible_shares(known, seed, wild):
    found = posterior(knowledge_of(*known), 0.0, "abcd", "wxyz")
    for belief in (found.mean(), found.draw(wild * normal_scores((4, 4), seed))):
        rates = belief.rates(20.0)
        assert rates.shape == (4, 4)
        assert np.all((rates >= 0) & (rates < 1e6))
        stored = belief.page_chance * belief.reach
        assert np.all((stored >= 0) & (stored <= 1))
    assert np.all(found.mean().rates(20.0) > 0)


@given(known=some_pairs, pages=st.floats(1, 100))
def test_one_rate_is_the_same_as_among_all(known, pages):
    belief = posterior(knowledge_of(*known), 0.0, "abcd", "wxyz").mean()
    rates = belief.rates(pages)
    assert all(
        belief.rate(site, node, pages) == pytest.approx(rates[site, node])
        for site in range(4)
        for node in range(4)
    )


@given(known=some_pairs, age_s=st.floats(0, 1e5))
def test_the_order_of_names_does_not_matter_nor_who_else_is_asked_for(known, age_s):
    knowledge = knowledge_of(*known)
    whole = posterior(knowledge, age_s, "abcd", "wxyz")
    part = posterior(knowledge, age_s, "db", "yw")
    for all_values, values in zip(whole[:-1], part[:-1], strict=True):
        wide = np.broadcast_to(all_values, (4, 4))[np.ix_([3, 1], [2, 0])]
        assert np.allclose(wide, np.broadcast_to(values, (2, 2)), rtol=1e-12)


def logit(share):
    inside = min(max(share, 1e-4), 1 - 1e-4)
    return log(inside / (1 - inside))


def share(logit_of):
    return 1 / (1 + exp(-min(max(logit_of, -9), 9)))


def independent(sums):
    """Pages tried and stored, as so many independent ones (Kish)."""
    per_attempt = max(1.0, sums.tried / sums.attempts) if sums.attempts else 1.0
    weight = 1 / (1 + (per_attempt - 1) * posteriors.ALIKE)
    return sums.tried * weight, min(sums.collected, sums.tried) * weight


def page_seconds(sums, overhead_s):
    if sums.tried < 1e-9:
        return 0.0
    return max(max(sums.active_s - sums.attempts * overhead_s, 0.5 * sums.active_s) / sums.tried, 1e-4)


def shrunk(sums, above):
    """Means of a pool, shrunk to the level above: page, bad, silent, seconds, overhead_s."""
    page, bad, silent, seconds, overhead_s = above
    if sums.active_s > 0:
        overhead_s = min(posteriors.OVERHEAD_S, 0.5 * sums.active_s / sums.attempts)
    pages, stored = independent(sums)
    failures = sums.failed + sums.silent
    prior = posteriors.POOL_WEIGHT * posteriors.PRIOR_PAGES
    prior_attempts = posteriors.POOL_WEIGHT * posteriors.PRIOR_ATTEMPTS
    return (
        logit((prior * share(page) + stored) / (prior + pages)),
        logit((prior_attempts * share(bad) + failures) / (prior_attempts + sums.attempts)),
        logit((prior_attempts * share(silent) + sums.silent) / (prior_attempts + failures)),
        log((prior * exp(seconds) + pages * page_seconds(sums, overhead_s)) / (prior + pages)),
        overhead_s,
    )


@given(known=some_pairs, site=st.sampled_from("abcd"), node=st.sampled_from("wxyz"))
def test_every_pair_is_what_the_docstring_says_worked_out_one_by_one(known, site, node):
    def pooled(of_site=None, of_node=None):
        own = (s for *pair, s in known if of_site in (None, pair[0]) and of_node in (None, pair[1]))
        return sum(own, PairStats())

    first = (
        logit(posteriors.PAGE_CHANCE), logit(posteriors.BAD_SHARE), logit(posteriors.SILENT_OF_BAD),
        log(posteriors.SECONDS_PER_PAGE), posteriors.OVERHEAD_S,
    )  # fmt: skip
    overall = shrunk(pooled(), first)
    of_site = shrunk(pooled(of_site=site), overall)
    of_node = shrunk(pooled(of_node=node), overall)
    page, bad, silent, seconds = (
        s + n - o for s, n, o in zip(of_site[:4], of_node[:4], overall[:4], strict=True)
    )
    own = pooled(site, node)
    pages, stored = independent(own)
    failures = own.failed + own.silent
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(posteriors, "LEAST_WEIGHT", posteriors.PRIOR_PAGES)  # the weight has tests of its own
        found = posterior(knowledge_of(*known), 0.0, [site], [node])
    weight = posteriors.PRIOR_PAGES
    assert [float(np.squeeze(value)) for value in found] == pytest.approx(
        [
            weight * share(page) + stored,
            weight * (1 - share(page)) + max(0.0, pages - stored),
            posteriors.PRIOR_ATTEMPTS * share(bad) + failures,
            posteriors.PRIOR_ATTEMPTS * (1 - share(bad)) + max(0.0, own.attempts - failures),
            weight + pages,
            weight * exp(seconds) + pages * page_seconds(own, of_site[4]),
            (own.tried + weight) / (own.offered + weight),
            (posteriors.PRIOR_ATTEMPTS * share(silent) + own.silent) / (posteriors.PRIOR_ATTEMPTS + failures),
            of_site[4],
            posteriors.RECALL_AFTER_S,
        ],
        rel=1e-6,
        abs=1e-7,
    )
