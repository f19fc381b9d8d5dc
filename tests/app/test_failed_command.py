import json

import pytest
from patience import PATIENCE_S
from tiny_world import DEAD


@pytest.fixture
def waiting(crawled):
    return [row["subtask_id"] for row in crawled.printed["waits_for_a_person"]]


def test_list_groups_by_cause(crawled, reviewloop, waiting):
    told = crawled.ask("failed", "list")
    [group] = told["groups"]
    assert (group["reason"], group["site"], group["count"]) == ("host_unreachable", DEAD, len(waiting))
    assert "check that the site still exists" in group["suggestion"]
    assert told["total"] == len(waiting)
    shown = reviewloop("failed", "list", "--db", crawled.url).stdout
    assert f"failed show {waiting[0]} " in shown
    assert "Suggested:" in shown


def test_show_tells_every_attempt(crawled, reviewloop, waiting):
    told = crawled.ask("failed", "show", waiting[0])
    numbers = [a["no"] for a in told["attempts"]]
    assert numbers == list(range(1, len(numbers) + 1))
    assert {(a["outcome"], a["reason"]) for a in told["attempts"]} == {
        ("failed", "host_unreachable"),
        ("released", None),
    }
    assert told["attempts"][-1]["last_response"]["url"].startswith(f"http://{DEAD}/")
    assert told["refetch"] is None
    shown = reviewloop("failed", "show", waiting[0], "--db", crawled.url).stdout
    assert "Last response of attempt" in shown
    assert "Suggested:" in shown
    assert reviewloop("failed", "show", 9999, "--db", crawled.url).exit_code == 2


def test_retry_begins_a_new_round(crawled, reviewloop, waiting):
    assert crawled.ask("failed", "retry", waiting[0]) == {"done": [waiting[0]], "refused": []}
    subtask = crawled.ask("explain", waiting[0])["subtask"]
    assert (subtask["state"], subtask["round"], subtask["recalls"]) == ("WAIT", 2, 0)
    assert subtask["failed_on"] == []
    again = reviewloop("failed", "retry", waiting[0], 9999, *waiting[1:], "--db", crawled.url, "--json")
    assert again.exit_code == 2
    told = json.loads(again.stdout)
    assert told["done"] == waiting[1:]
    assert [one["subtask"] for one in told["refused"]] == [waiting[0], 9999]
    assert "is in WAIT" in again.stderr
    assert "there is no subtask 9999" in again.stderr
    assert crawled.ask("verify")["violations"] == []


def test_retry_of_nothing(crawled, reviewloop):
    assert crawled.ask("failed", "retry", "--site", "12315.com")["done"] == []
    for wrong in ((), ("1", "--all")):
        result = reviewloop("failed", "retry", *wrong, "--db", crawled.url)
        assert result.exit_code == 2
        assert "not both" in result.stderr


def test_what_is_tried_again_runs_again(crawled, reviewloop, lab, waiting):
    crawled.ask("failed", "assign", waiting[0], "node2")
    result = reviewloop(
        "run", "--until-done", "--for", PATIENCE_S, "--lab", f"{lab.host}:{lab.port}",
        "--db", crawled.url, "--json",
    )  # fmt: skip
    assert json.loads(result.stdout)["queues"]["MANUAL"] == len(waiting)
    attempts = crawled.ask("failed", "show", waiting[0])["attempts"]
    assert next(a["node"] for a in attempts if a["round"] == 2) == "node2"
    assert crawled.ask("verify")["violations"] == []


def test_assign(crawled, reviewloop, waiting):
    for number, node, said in ((waiting[0], "node9", "there is no node"), (9999, "node1", "no subtask 9999")):
        result = reviewloop("failed", "assign", number, node, "--db", crawled.url)
        assert result.exit_code == 2
        assert said in result.stderr
    assert (
        f"Given to node3: {waiting[0]}"
        in reviewloop("failed", "assign", waiting[0], "node3", "--db", crawled.url).stdout
    )
    assert crawled.ask("explain", waiting[0])["subtask"]["assigned_node"] == "node3"


def test_abandon(crawled, reviewloop, waiting):
    done = next(n for n in range(1, 20) if crawled.ask("explain", n)["subtask"]["state"] == "DONE")
    result = reviewloop("failed", "abandon", waiting[0], done, "--why", "it is gone", "--db", crawled.url)
    assert result.exit_code == 2
    assert f"Abandoned: {waiting[0]}" in result.stdout
    assert "does not start from DONE" in result.stderr
    told = crawled.ask("explain", waiting[0])
    assert told["subtask"]["state"] == "CANCELLED"
    assert told["events"][-1]["detail"]["why"] == "it is gone"
    assert crawled.ask("verify")["violations"] == []


def test_a_dry_run_does_nothing(crawled, reviewloop):
    """Only what would be done to which subtask is listed."""
    [group, *_] = crawled.ask("failed", "list")["groups"]
    ids = [row["subtask_id"] for row in group["subtasks"]]
    before = crawled.ask("status")["queues"]
    for words in (("retry", "--all"), ("retry", "--site", group["site"]), ("abandon", *ids)):
        told = crawled.ask("failed", *words, "--dry-run")
        assert {one["subtask"] for one in told["would"]} >= set(ids)
        shown = reviewloop("failed", *words, "--dry-run", "--db", crawled.url).stdout
        assert "nothing was done" in shown
    assert crawled.ask("status")["queues"] == before
    assert reviewloop("failed", "abandon", 999_999, "--dry-run", "--db", crawled.url).exit_code == 2


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (("failed", "retry", "--site", "12315.con"), "12315.com"),
        (("control", "pairs", "--site", "12315.con"), "12315.com"),
        (("control", "pairs", "--node", "nod1"), "node1"),
        (("export", "reviews", "--site", "12315.con"), "12315.com"),
        (("nodes", "drain", "nod1"), "node1"),
    ],
)
def test_a_name_that_is_not_known_is_refused_with_those_near(crawled, reviewloop, words, near):
    told = reviewloop(*words, "--db", crawled.url)
    assert told.exit_code == 2
    assert near in told.stderr


def test_a_failed_subtask_is_changed_and_tried_again(crawled, reviewloop, waiting):
    done = crawled.ask("failed", "edit", waiting[0], "--quota", 5)
    assert done == {"done": [waiting[0]], "refused": []}
    told = crawled.ask("failed", "show", waiting[0])
    assert (told["subtask"]["state"], told["subtask"]["assigned_quota"]) == ("WAIT", 5)
    explained = reviewloop("explain", waiting[0], "--db", crawled.url).stdout
    assert "A person set its quota: 5 hits an attempt." in explained
    assert crawled.ask("verify")["violations"] == []
    for wrong, why in (
        ((), "nothing to change"),
        (("--address", "1=http://else.cn/"), "--address"),
        (("--quota", "5"), "only one in MANUAL"),
        (("--quota", "0"), "0 is not in the range"),
    ):
        result = reviewloop("failed", "edit", waiting[0], *wrong, "--db", crawled.url)
        assert result.exit_code == 2
        assert why in result.stderr
