import json
import math
import os
import signal
import socket
import sqlite3
import time
from collections import Counter
from contextlib import closing
from threading import Thread

import pytest
from patience import PATIENCE_S
from tiny_world import DEAD, REFUSED

from app.cli.crawl import progress


def test_the_document_of_a_run(crawled):
    told = crawled.printed
    assert {name for name, n in told["queues"].items() if n} == {"DONE", "MANUAL"}
    assert told["products"] == 2
    assert told["tasks"] == 8  # robots.txt of one site of five refuses
    assert told["pages"] == told["added"]["pages"] > 10
    assert told["reviews_stored"] == told["reviews"] == told["added"]["reviews"] >= told["pages"]
    assert told["manual"] == len(told["waits_for_a_person"]) == told["queues"]["MANUAL"]
    assert (
        told["recalls"] <= 2 * told["manual"]
    )  # each node that knew nothing against the dead site was tried
    assert told["waits_for_hosts"] == []
    assert told["settings"]["allocation"] == "feedback"
    assert told["settings"]["nodes"] == 3
    collected = sum(pair["collected"] for pair in told["pairs"])
    assert collected == told["pages"]
    for pair in told["pairs"]:
        assert pair["offered"] >= pair["tried"] >= pair["collected"]
        assert pair["completion"] is None or 0 <= pair["completion"] <= 1
        assert {"site", "node", "active_s", "wait_s", "attempts", "failed", "silent"} <= pair.keys()


def test_the_log_of_requests_and_the_statistics_of_the_run_agree(crawled):
    lines = [json.loads(line) for line in crawled.requests.read_text("utf-8").splitlines()]
    told = crawled.printed["statistics"]
    of_attempts = [line for line in lines if line["attempt"]]
    answered = Counter(str(line["status"] or line["outcome"]) for line in of_attempts)
    assert told["statuses"] == dict(answered)
    assert told["statuses"]["200"] > 10
    assert told["requests"] == len(of_attempts)
    assert told["bytes"] == sum(line["bytes"] for line in of_attempts if line["outcome"] == "ok")
    assert {line["site"] for line in of_attempts} <= {pair["site"] for pair in crawled.printed["pairs"]}
    assert sum(told["outcomes"].values()) >= len({line["attempt"] for line in of_attempts})
    assert told["errors"]["connect"] > 0  # of the dead site


def test_a_second_run_has_nothing_left_to_do(crawled, reviewloop, lab):
    where = ("--lab", f"{lab.host}:{lab.port}", "--db", crawled.url)
    result = reviewloop("-v", "run", "--until-done", *where)
    assert "waited for permits" in result.stdout
    assert result.exit_code == 0
    assert "(0 and 0 of them by this run)" in result.stdout
    assert "Nodes: 4, each with 4 slots, on the lab" in result.stderr
    assert f"host_unreachable at {DEAD}" in result.stdout


def test_stored_products_are_crawled_at_the_sites_of_the_run_only(reviewloop, lab, tmp_path):
    where = ("--lab", f"{lab.host}:{lab.port}", "--db", f"sqlite:///{tmp_path / 'reviews.db'}")
    assert reviewloop("product", "add", "特仑苏", *where[2:]).exit_code == 0
    site = "12315.com"
    result = reviewloop("run", "--until-done", "--nodes", 1, "--site", site, "--json", *where)
    told = json.loads(result.stdout)
    assert result.exit_code == 0, "it did all that it was to do"
    assert {pair["site"] for pair in told["pairs"]} == {site}
    assert told["queues"]["WAIT"] + told["queues"]["PRIORITY"] > 0, "other sites wait for another run"
    assert "at other sites wait for a run without --group and --site" in result.stderr
    assert reviewloop("run", "--site", "nowhere.cn", *where).exit_code == 2


def test_work_that_waits_for_a_host_that_is_down(reviewloop, tmp_path, monkeypatch):
    def say(text, *more, **options):
        shown(text, *more, **options)
        if "Ctrl-C" in str(text):
            os.kill(os.getpid(), signal.SIGINT)

    shown = progress.messages.print
    monkeypatch.setattr(progress.messages, "print", say)
    url = f"sqlite:///{tmp_path / 'reviews.db'}"
    with socket.create_server(("127.0.0.1", 0)) as dying:
        lab = f"127.0.0.1:{dying.getsockname()[1]}"
        # It answers once, when the run asks whether it is there, and is gone then.
        Thread(target=lambda: (dying.accept()[0].close(), dying.close()), daemon=True).start()
        patience = {"REVIEWLOOP_REST_FACTOR": "1", "REVIEWLOOP_MOST_UNANSWERED": "20"}
        begin_s = time.monotonic()
        result = reviewloop(
            *("run", "特仑苏", "--until-done", "--lab", lab, "--nodes", 1, "--db", url),
            **patience,
        )
        took_s = time.monotonic() - begin_s
    assert result.exit_code == 1
    assert "Hosts that subtasks wait for" in result.stdout
    assert "(unreachable):" in result.stderr
    assert result.stderr.count("Ctrl-C ends the run without loss") == 1
    told = json.loads(reviewloop("status", "--db", url, "--json").stdout)
    assert sum(one["subtasks"] for one in told["waits_for_hosts"]) == told["queues"]["WAIT"] > 0
    assert {one["cause"] for one in told["waits_for_hosts"]} == {"unreachable"}
    assert "unreachable" in reviewloop("status", "--db", url).stdout
    verified = json.loads(reviewloop("verify", "--db", url, "--json").stdout)
    assert verified["violations"] == []
    # A rest of 3 s, then one of 6 s, 12 s ...: no subtask is tried more often, however often there is a free slot.
    tries = 1 + math.log2(1 + took_s / 3)
    assert verified["counts"]["attempts"] <= tries * verified["counts"]["subtasks"]


def test_a_lab_that_is_not_there(reviewloop, tmp_path):
    with socket.socket() as nobody:  # bound, and not listening: every connection is refused
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
        result = reviewloop(
            "run", "特仑苏", "--lab", f"127.0.0.1:{port}", "--db", f"sqlite:///{tmp_path / 'r.db'}"
        )
    assert result.exit_code == 2
    assert f"reviewloop lab --port {port}" in result.stderr


def test_strategies_switched_off_and_a_refused_name(reviewloop, lab, tmp_path):
    result = reviewloop(
        "run", "特仑苏", "250ml", "--until-done", "--for", PATIENCE_S, "--lab", f"{lab.host}:{lab.port}", "--nodes", 1,
        "--slots", 8, "--allocation", "random", "--no-modification", "--no-recall", "--json",
        "--db", f"sqlite:///{tmp_path / 'reviews.db'}",
    )  # fmt: skip
    assert result.exit_code == 2  # for the name; the rest was done
    told = json.loads(result.stdout)
    assert told["recalls"] == 0
    assert told["settings"]["recall"] is told["settings"]["modification"] is False
    assert "leaves no keyword" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "there is no product to crawl"),
        (("--lab", "8.8.8.8:80"), "loopback"),
        (("--lab", "nowhere"), "HOST:PORT"),
        (("--nodes", "0"), "--nodes"),
        (("--for", "0"), "--for"),
        (("--allocation", "best"), "feedback"),
        (("--sites", "nowhere.yaml"), "nowhere.yaml"),
    ],
)
def test_wrong_input(reviewloop, tmp_path, arguments, said):
    result = reviewloop("run", "--until-done", *arguments, "--db", f"sqlite:///{tmp_path / 'reviews.db'}")
    assert result.exit_code == 2
    assert said in result.stderr
    assert not result.stdout


def test_status(crawled, reviewloop):
    told = crawled.ask("status")
    assert told["queues"] == crawled.printed["queues"]
    assert (told["pages"], told["held_back"], told["oldest_waiting_since"]) == (
        crawled.printed["pages"],
        0,
        None,
    )
    assert [node["state"] for node in told["nodes"]] == ["stopped"] * 3
    shown = reviewloop("status", "--db", crawled.url).stdout
    assert "MANUAL" in shown
    assert "127.0.0.4" in shown


def test_nodes(crawled, reviewloop):
    assert crawled.ask("nodes", "drain", "node2") == {"node": "node2", "drained": True}
    nodes = {node["name"]: node for node in crawled.ask("nodes", "list")["nodes"]}
    assert nodes["node2"]["drained"]
    assert nodes["node1"]["kinds"] == ["meta", "microblog"]
    line, *_ = [
        one
        for one in reviewloop("nodes", "list", "--db", crawled.url).stdout.splitlines()
        if "node2 " in one[:7]
    ]
    assert line.split()[:3] == ["node2", "stopped", "yes"]
    assert "in service" in reviewloop("nodes", "resume", "node2", "--db", crawled.url).stdout
    assert not any(node["drained"] for node in crawled.ask("nodes", "list")["nodes"])
    wrong = reviewloop("nodes", "drain", "node9", "--db", crawled.url)
    assert wrong.exit_code == 2
    assert "registered: node1, node2, node3" in wrong.stderr


def test_control_pairs(crawled, reviewloop):
    told = crawled.ask("control", "pairs")["pairs"]
    assert [row | pair for row, pair in zip(told, crawled.printed["pairs"], strict=True)] == told
    of_site = crawled.ask("control", "pairs", "--site", "12315.com", "--node", "node1")["pairs"]
    assert {(p["site"], p["node"]) for p in of_site} <= {("12315.com", "node1")}
    matrix = reviewloop("control", "pairs", "--db", crawled.url).stdout
    assert "node3" in matrix
    assert "12315.com" in matrix
    refused = reviewloop("control", "pairs", "--site", REFUSED, "--db", crawled.url)
    assert "No attempt" in refused.stdout


def test_explain_tells_the_whole_story(crawled, reviewloop):
    number = crawled.printed["waits_for_a_person"][0]["subtask_id"]
    told = crawled.ask("explain", number)
    assert told["subtask"]["site"] == DEAD
    transitions = [event["transition"] for event in told["events"]]
    assert transitions[:3] == ["create", "admit", "allocate"]
    assert transitions.count("recall") <= 2  # to each other node that knew nothing against the site
    assert "release" in transitions
    assert transitions[-1] == "give_up"
    allocation = next(e["detail"] for e in told["events"] if e["transition"] == "allocate")
    assert {c["node"] for c in allocation["candidates"]} == {"node1", "node2", "node3"}
    assert len(told["attempts"]) >= 4
    assert told["subtask"]["idle_releases"] == 4
    shown = reviewloop("explain", number, "--db", crawled.url).stdout
    for said in (
        *("→ WAIT", "by strategy feedback", "quota", f"{DEAD} does not answer"),
        *("Attempts in a row without an answer: 4", "nobody answered 4 attempts", "Suggested: check that"),
    ):
        assert said in shown
    decided = [event["detail"] for event in told["events"] if event["transition"] == "allocate"]
    assert ("ruled by" in shown) == any(one.get("prices") for one in decided)  # the first leases have no plan
    done = next(n for n in range(1, 20) if crawled.ask("explain", n)["subtask"]["state"] == "DONE")
    assert "nothing left over" in reviewloop("explain", done, "--db", crawled.url).stdout
    missing = reviewloop("explain", 10_000, "--db", crawled.url)
    assert missing.exit_code == 2
    assert "there is no subtask 10000" in missing.stderr


def test_verify(crawled, reviewloop):
    told = crawled.ask("verify")
    assert told["violations"] == []
    assert told["counts"]["pages"] == crawled.printed["pages"]
    assert "No violation." in reviewloop("verify", "--db", crawled.url).stdout


def test_verify_finds_what_was_broken(crawled, reviewloop):
    with closing(sqlite3.connect(crawled.url.removeprefix("sqlite:///"))) as conn, conn:
        conn.execute("UPDATE subtasks SET state = 'DONE' WHERE state = 'MANUAL'")
    result = reviewloop("verify", "--db", crawled.url, "--json")
    assert result.exit_code == 1
    assert {"queue", "lost"} <= {v["kind"] for v in json.loads(result.stdout)["violations"]}
    shown = reviewloop("verify", "--db", crawled.url)
    assert shown.exit_code == 1
    assert "violations" in shown.stdout


def test_sites_that_robots_refuses_get_no_task(crawled, reviewloop):
    sites = {row["site"]: row for row in crawled.ask("sites", "list")["sites"]}
    assert sites[REFUSED]["robots"] == "not permitted"
    assert sites[REFUSED]["tasks"] == 0
    assert sites["12315.com"]["robots"] == "permitted"
    assert sites["12315.com"]["pages"] > 0
    assert sites[DEAD]["robots"] == "unknown"
    assert sites[DEAD]["manual"] == crawled.printed["manual"]
    shown = reviewloop("sites", "list", "--db", crawled.url).stdout
    assert f"{REFUSED} is not permitted: robots.txt of {REFUSED} refuses /" in shown
