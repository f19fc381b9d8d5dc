"""Decisions are pure; calm answers depend on the URL alone; limits and blocks are per client."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.lab.answers import Answer
from app.lab.behaviour import LabRequest, Memory, decide
from app.lab.profile import Conduct, Conducts, Profile, ProfileError, Role, built_in, load_profile

CALM = Conducts(load_profile("calm"))
urls = st.tuples(
    st.sampled_from(["12315.com", "www.baidu.com", "weibo.com"]), st.text(max_size=30).map("/{}".format)
)
asks = st.lists(
    st.builds(
        LabRequest,
        client=st.sampled_from(["127.0.0.2", "127.0.0.3", "127.0.0.4"]),
        host=st.sampled_from(["12315.com", "www.baidu.com", "315chn.com"]),
        target=st.integers(0, 5).map("/{}".format),
        t=st.floats(0, 1000),
    ),
    max_size=80,
)


def role_of(host):
    return Role.ENGINE if "baidu" in host else Role.SITE


def calm(ask, memory, seed=1):
    return decide(CALM.at(ask.client, ask.host, role_of(ask.host), ask.t), seed, ask, memory)


def answers(conduct, requests, client="127.0.0.2", every_s=0.0, start_s=0.0, memory=None):
    memory = memory or Memory()
    return [
        decide(conduct, 1, LabRequest(client, "12315.com", f"/{i}", start_s + i * every_s), memory).answer
        for i in range(requests)
    ]


@given(url=urls, seed=st.integers(0, 10), clients=st.permutations(["127.0.0.2", "127.0.0.3", "127.0.0.4"]))
def test_calm_depends_on_the_url_alone_and_every_fault_ends_before_the_third_request(url, seed, clients):
    first, second = Memory(), Memory()
    seen = [calm(LabRequest("127.0.0.9", *url, t=i), first, seed) for i in range(4)]
    assert seen == [calm(LabRequest(clients[i % 3], *url, t=997.0 * i), second, seed) for i in range(4)]
    assert [decision.answer for decision in seen[2:]] == [Answer.PAGE, Answer.PAGE]
    assert all(0.005 <= decision.latency_s <= 0.03 for decision in seen)
    assert all(decision.hang_s <= 1 for decision in seen)


def test_calm_has_faults_that_last_one_request_and_some_that_last_two():
    memory, lasted = Memory(), {0: 0, 1: 0, 2: 0}
    kinds = set()
    for i in range(3000):
        seen = [calm(LabRequest("127.0.0.2", "12315.com", f"/{i}", 0), memory).answer for _ in range(3)]
        bad = [answer for answer in seen if answer is not Answer.PAGE]
        kinds |= set(bad)
        lasted[len(bad)] += 1
    assert kinds == {Answer.SERVER_ERROR, Answer.UNAVAILABLE, Answer.CUT_OFF, Answer.HANG}
    assert lasted[1] > 50
    assert lasted[2] > 50
    assert lasted[0] / 3000 == pytest.approx(0.935, abs=0.02)


@given(asks=asks, profile=st.sampled_from(built_in()), seed=st.integers(0, 3))
def test_the_same_requests_are_answered_the_same(asks, profile, seed):
    def run():
        conducts, memory = Conducts(load_profile(profile)), Memory()
        ordered = sorted(asks, key=lambda ask: ask.t)
        return [
            decide(conducts.at(ask.client, ask.host, role_of(ask.host), ask.t), seed, ask, memory)
            for ask in ordered
        ]

    assert run() == run()


def test_a_rate_limit_lets_its_rate_through_and_no_more():
    conduct = Conduct.model_validate({"rate_limit": {"requests": 5, "window_s": 10, "retry_after_s": 7}})
    seen = answers(conduct, 100, every_s=0.5)
    assert seen[:6] == [Answer.PAGE] * 5 + [Answer.RATE_LIMITED]
    assert seen.count(Answer.PAGE) == 25
    memory = Memory()
    answers(conduct, 5, memory=memory)
    refused = decide(conduct, 1, LabRequest("127.0.0.2", "12315.com", "/x", 9.99), memory)
    assert (refused.answer, refused.retry_after_s) == (Answer.RATE_LIMITED, 7)
    assert decide(conduct, 1, LabRequest("127.0.0.2", "12315.com", "/x", 10.0), memory).answer is Answer.PAGE
    assert answers(conduct, 5, client="127.0.0.3", memory=memory) == [Answer.PAGE] * 5


def test_a_rate_limit_may_be_a_page_without_retry_after():
    conduct = Conduct.model_validate(
        {"rate_limit": {"requests": 1, "window_s": 10, "answer": "too_frequent"}}
    )
    memory = Memory()
    answers(conduct, 1, memory=memory)
    refused = decide(conduct, 1, LabRequest("127.0.0.2", "12315.com", "/x", 1), memory)
    assert (refused.answer, refused.retry_after_s) == (Answer.TOO_FREQUENT, None)


def test_a_block_lasts_its_time_for_one_client_on_one_host():
    conduct = Conduct.model_validate(
        {"block": {"requests": 3, "window_s": 10, "for_s": 20, "answer": "captcha"}}
    )
    memory = Memory()
    assert answers(conduct, 5, memory=memory) == [Answer.PAGE] * 3 + [Answer.CAPTCHA] * 2
    assert answers(conduct, 1, client="127.0.0.3", memory=memory) == [Answer.PAGE]
    assert decide(conduct, 1, LabRequest("127.0.0.2", "weibo.com", "/", 1), memory).answer is Answer.PAGE
    assert answers(conduct, 1, start_s=19.99, memory=memory) == [Answer.CAPTCHA]
    assert answers(conduct, 4, start_s=20, memory=memory) == [Answer.PAGE] * 3 + [Answer.CAPTCHA]


def test_slow_requests_are_never_blocked():
    conduct = Conduct.model_validate({"block": {"requests": 3, "window_s": 10, "for_s": 20}})
    assert answers(conduct, 50, every_s=3.5) == [Answer.PAGE] * 50


def test_what_is_lost_or_moved_stays_so_for_everybody():
    conduct = Conduct.model_validate({"lost": {"not_found": 0.2, "gone": 0.2}, "moved": 0.2})
    memory = Memory()
    first = answers(conduct, 500, memory=memory)
    assert first == answers(conduct, 500, client="127.0.0.3", start_s=99, memory=memory)
    assert set(first) == {Answer.PAGE, Answer.NOT_FOUND, Answer.GONE, Answer.MOVED}
    www = [
        decide(conduct, 1, LabRequest("127.0.0.2", "www.12315.com", f"/{i}", 0), memory).answer
        for i in range(200)
    ]
    assert Answer.MOVED not in www


def test_faults_come_in_their_shares():
    conduct = Conduct.model_validate({"faults": {"server_error": 0.1, "login_page": 0.3}})
    seen = answers(conduct, 5000)
    assert seen.count(Answer.SERVER_ERROR) / 5000 == pytest.approx(0.1, abs=0.02)
    assert seen.count(Answer.LOGIN_PAGE) / 5000 == pytest.approx(0.3, abs=0.02)


def test_later_entries_override_earlier_ones_key_by_key_from_their_moment_on():
    conducts = Conducts(
        Profile.model_validate(
            {
                "name": "x",
                "pairs": [
                    {"latency_ms": [1, 2], "block": {"requests": 1, "window_s": 1, "for_s": 1}},
                    {"client": "127.0.0.2", "host": "315*", "latency_ms": [3, 4]},
                    {"host": "315ok.com", "role": "site", "from_s": 10, "dead": True, "block": None},
                ],
            }
        )
    )
    early = conducts.at("127.0.0.2", "www.315ok.com", Role.SITE, 9.99)
    late = conducts.at("127.0.0.2", "315ok.com", Role.SITE, 10.0)
    assert (early.latency_ms, early.dead, early.block is None) == ((3, 4), False, False)
    assert (late.latency_ms, late.dead, late.block is None) == ((3, 4), True, True)
    assert conducts.at("127.0.0.3", "315ok.com", Role.SITE, 0).latency_ms == (1, 2)
    assert conducts.at("127.0.0.3", "315ok.com", Role.ENGINE, 10).dead is False


def test_the_default_profile_has_each_node_good_where_the_paper_has_it_and_three_pairs_that_fall():
    conducts = Conducts(load_profile("default"))

    def failing(client, site, t):
        return sum(conducts.at(client, site, Role.SITE, t).faults.values())

    good = {
        "127.0.0.2": ("12315.com", "315tousu.org"),
        "127.0.0.3": ("12315.com", "t.163.com"),
        "127.0.0.4": ("315tousu.org", "t.163.com"),
        "127.0.0.5": ("cca.org.cn", "weibo.com"),
    }
    paper_sites = ("12315.com", "315tousu.org", "t.163.com", "cca.org.cn", "weibo.com")
    for client, sites in good.items():
        for site in paper_sites:
            assert (failing(client, site, 1000) < 0.1) is (site in sites)
    for client, site in (("127.0.0.2", "t.163.com"), ("127.0.0.4", "12315.com"), ("127.0.0.5", "t.163.com")):
        assert failing(client, site, 0) < 0.1
        assert failing(client, site, 60) > 0.5


@pytest.mark.parametrize(
    ("pair", "key", "says"),
    [
        ({"latency": 3}, "pairs[0].latency", "no such key"),
        ({"latency_ms": [9, 3]}, "pairs[0].latency_ms", "lowest, highest"),
        ({"faults": {"server_error": 0.7, "cut_off": 0.7}}, "pairs[0].faults", "add up to 1.4"),
        ({"faults": {"not_found": 0.7}}, "pairs[0].faults", "not possible here"),
        ({"faults": {"nonsense": 0.7}}, "pairs[0].faults", "nonsense"),
        ({"block": {"requests": 0, "window_s": 1, "for_s": 1}}, "pairs[0].block.requests", "greater than"),
        ({"hang_s": 61}, "pairs[0].hang_s", "less than or equal to 60"),
        ({"role": "server"}, "pairs[0].role", "engine"),
    ],
)
def test_a_wrong_profile_is_refused_with_file_and_key(tmp_path, pair, key, says):
    path = tmp_path / "mine.yaml"
    path.write_text(f"name: mine\npairs: [{pair}]\n".replace("'", '"'), "utf-8")
    with pytest.raises(ProfileError) as caught:
        load_profile(str(path))
    message = str(caught.value)
    assert "mine.yaml" in message
    assert key in message
    assert says in message


@pytest.mark.parametrize("text", ["pairs: [", "", "- 1"])
def test_what_is_no_profile_is_refused(tmp_path, text):
    path = tmp_path / "mine.yaml"
    path.write_text(text, "utf-8")
    with pytest.raises(ProfileError, match=r"mine\.yaml"):
        load_profile(str(path))


def test_an_unknown_profile_names_those_there_are():
    with pytest.raises(ProfileError, match="calm, day, default, demo, harsh"):
        load_profile("clam")
