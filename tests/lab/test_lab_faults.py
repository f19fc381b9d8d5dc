"""Decisions are pure, calm answers depend on the URL alone, and limits and blocks count each client by itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.lab.answers import LabAnswer
from app.lab.faults import LabRequest, Memory, decide
from app.lab.profile import Conduct, Conducts, ProfileError, list_built_in, load_profile

CALM = Conducts(load_profile("calm"))
urls = st.tuples(
    st.sampled_from(["12315.com", "www.baidu.com", "weibo.com"]), st.text(max_size=30).map("/{}".format)
)
asks = st.lists(
    st.builds(
        LabRequest,
        client=st.sampled_from(["127.0.0.2", "127.0.0.3", "127.0.0.4"]),
        host=st.sampled_from(["12315.com", "www.baidu.com", "315chn.com"]),
        path=st.integers(0, 5).map("/{}".format),
        t=st.floats(0, 1000),
    ),
    max_size=80,
)


def role_of(host):
    return "engine" if "baidu" in host else "site"


def calm(ask, memory, seed=1):
    return decide(CALM.find(ask.client, ask.host, role_of(ask.host), ask.t), seed, ask, memory)


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
    assert [decision.answer for decision in seen[2:]] == [LabAnswer.PAGE, LabAnswer.PAGE]
    assert all(0.005 <= decision.latency_s <= 0.03 for decision in seen)
    assert all(decision.hang_s <= 1 for decision in seen)


@given(asks=asks, profile=st.sampled_from(list_built_in()), seed=st.integers(0, 3))
def test_the_same_requests_are_answered_the_same(asks, profile, seed):
    def run():
        conducts, memory = Conducts(load_profile(profile)), Memory()
        ordered = sorted(asks, key=lambda ask: ask.t)
        return [
            decide(conducts.find(ask.client, ask.host, role_of(ask.host), ask.t), seed, ask, memory)
            for ask in ordered
        ]

    assert run() == run()


def test_a_rate_limit_lets_its_rate_through_and_no_more():
    conduct = Conduct.model_validate({"rate_limit": {"requests": 5, "window_s": 10, "retry_after_s": 7}})
    seen = answers(conduct, 100, every_s=0.5)
    assert seen[:6] == [LabAnswer.PAGE] * 5 + [LabAnswer.RATE_LIMITED]
    assert seen.count(LabAnswer.PAGE) == 25
    memory = Memory()
    answers(conduct, 5, memory=memory)
    refused = decide(conduct, 1, LabRequest("127.0.0.2", "12315.com", "/x", 9.99), memory)
    assert (refused.answer, refused.retry_after_s) == (LabAnswer.RATE_LIMITED, 7)
    assert (
        decide(conduct, 1, LabRequest("127.0.0.2", "12315.com", "/x", 10.0), memory).answer is LabAnswer.PAGE
    )
    assert answers(conduct, 5, client="127.0.0.3", memory=memory) == [LabAnswer.PAGE] * 5


def test_a_block_lasts_its_time_for_one_client_on_one_host():
    conduct = Conduct.model_validate(
        {"block": {"requests": 3, "window_s": 10, "for_s": 20, "answer": "captcha"}}
    )
    memory = Memory()
    assert answers(conduct, 5, memory=memory) == [LabAnswer.PAGE] * 3 + [LabAnswer.CAPTCHA] * 2
    assert answers(conduct, 1, client="127.0.0.3", memory=memory) == [LabAnswer.PAGE]
    assert decide(conduct, 1, LabRequest("127.0.0.2", "weibo.com", "/", 1), memory).answer is LabAnswer.PAGE
    assert answers(conduct, 1, start_s=19.99, memory=memory) == [LabAnswer.CAPTCHA]
    assert answers(conduct, 4, start_s=20, memory=memory) == [LabAnswer.PAGE] * 3 + [LabAnswer.CAPTCHA]


def test_the_default_profile_has_each_node_good_where_the_paper_has_it_and_three_pairs_that_fall():
    conducts = Conducts(load_profile("default"))

    def failing(client, site, t):
        return sum(conducts.find(client, site, "site", t).faults.values())

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
        ({"latency": 3}, "pairs[0].latency", "unknown key"),
        ({"latency_ms": [9, 3]}, "pairs[0].latency_ms", "lowest, highest"),
        ({"faults": {"server_error": 0.7, "cut_off": 0.7}}, "pairs[0].faults", "add up to 1.4"),
        ({"faults": {"not_found": 0.7}}, "pairs[0].faults", "'server_error'"),
        ({"faults": {"nonsense": 0.7}}, "pairs[0].faults", "nonsense"),
        (
            {"block": {"requests": 0, "window_s": 1, "for_s": 1}},
            "pairs[0].block.requests",
            "must be 1 or more",
        ),
        ({"hang_s": 61}, "pairs[0].hang_s", "must be 60.0 or less"),
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
