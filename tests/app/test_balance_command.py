import json

import pytest

from app.run.hardware import this_machine
from tasks.scheduling.balance.learned import train

LINES = [
    {"name": "a", "setup_s": 20, "seconds_per_url": 1},
    {"name": "b", "setup_s": 0, "seconds_per_url": 3},
]
BENT = {"name": "c", "curve": [[0, 0], [10, 5], [20, 25]]}
MACHINE = {"name": "m", "cpu_cores": 2, "cpu_ghz": 2.4, "memory_gb": 2, "net_mbps": 10, "disk_mbps": None}
HEADER = "cpu_cores,cpu_ghz,memory_gb,net_mbps,disk_mbps,n,seconds"


@pytest.fixture
def balance(reviewloop, tmp_path):
    def ask(nodes, *options):
        path = tmp_path / "nodes.json"
        path.write_text(nodes if isinstance(nodes, str) else json.dumps(nodes), "utf-8")
        return reviewloop("balance", path, *options)

    return ask


def test_the_exact_split(balance):
    told = json.loads(balance(LINES, "--total", 100, "--json").stdout)
    assert told["allocation"] == [70, 30]
    assert told["predicted_s"] == [90, 90]
    assert (told["makespan_s"], told["variance"]) == (90, 0)
    assert told["names"] == ["a", "b"]
    assert told["even"]["makespan_s"] == 150


def runs(count):
    rows = [
        f"{1 + k % 4},2.4,{1 + k % 3},{5 + k % 7},,{1 + k % 50},{3 + (1 + k % 50) * 0.5}"
        for k in range(count)
    ]
    return "\n".join([HEADER, *rows, ""])


@pytest.mark.slow
def test_run_times_are_learned_from_recorded_runs(balance, tmp_path, monkeypatch):
    trained = {}

    def train_once(samples, seed):
        """Training takes seconds: the same runs and the same seed are trained once."""
        key = (tuple(samples), seed)
        if key not in trained:
            trained[key] = train(samples, seed)
        return trained[key]

    monkeypatch.setattr("app.cli.inspect.balance.train", train_once)
    recorded = tmp_path / "runs.csv"
    recorded.write_text(runs(300), "utf-8")
    options = ("--total", 60, "--attempts", recorded)
    told = json.loads(balance([MACHINE, LINES[0]], *options, "--json").stdout)
    assert sum(told["allocation"]) == 60
    assert told["learned"]["r_squared"] > 0.9
    assert told["predicted_s"][0] == pytest.approx(3 + told["allocation"][0] * 0.5, rel=0.2)
    assert "not seen" in balance([MACHINE], *options).stdout
    as_json = tmp_path / "runs.json"
    keys = HEADER.split(",")
    rows = [line.split(",") for line in runs(300).splitlines()[1:]]
    as_json.write_text(
        json.dumps([{k: float(v) if v else None for k, v in zip(keys, row, strict=True)} for row in rows])
    )
    same = json.loads(balance([MACHINE, LINES[0]], "--total", 60, "--attempts", as_json, "--json").stdout)
    assert same == told
    assert len(trained) == 1, "a table and a list of the same runs are the same"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (runs(20), "20 recorded runs are too few"),
        ("a,b\n", ":1: the header has no cpu_cores"),
        (f"{HEADER}\n1,2,3,4,5,1.5,6\n", ":2:.n: must be a whole number; found 1.5"),
        (f"{HEADER}\n1,2,3,4,x,1,6\n", ":2:.disk_mbps: must be a number; found 'x'"),
        (f"{HEADER}\n1,2,3,4,5,1,0\n", ":2:.seconds: must be greater than 0"),
        (f"{HEADER}\n0,2,3,4,5,1,1\n", ":2:.cpu_cores: must be greater than 0"),
        (f"{HEADER}\n1,2\n", ":2:.n: must be a whole number; found nothing"),
    ],
)
def test_recorded_runs_that_are_wrong(balance, tmp_path, text, said):
    recorded = tmp_path / "runs.csv"
    recorded.write_text(text, "utf-8")
    result = balance([MACHINE], "--total", 60, "--attempts", recorded)
    assert result.exit_code == 2
    assert str(recorded) in result.stderr
    assert said in result.stderr


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ("[{", "nodes.json:1:"),
        ({}, "is no list of nodes"),
        ([], "at least one"),
        ([7], "[0] has 0 of the three forms"),
        ([{"setup_s": 1, "seconds_per_url": 1}], "[0].name"),
        ([LINES[0], LINES[0]], "[1].name: 'a' is there twice"),
        ([{"name": "a"}], "[0] has 0 of the three forms"),
        ([{**LINES[0], **BENT}], "[0] has 2 of the three forms"),
        ([{**LINES[0], "slots": 2}], "[0].slots: unknown key"),
        ([{"name": "a", "setup_s": 1}], "[0].seconds_per_url: missing"),
        ([{**LINES[0], "setup_s": "1"}], "[0].setup_s: must be a number; found '1'"),
        ([{**LINES[0], "setup_s": True}], "[0].setup_s: must be a number; found True"),
        ([{**LINES[0], "setup_s": -1}], "[0]: setup_s is -1"),
        ('[{"name": "a", "setup_s": NaN, "seconds_per_url": 1}]', "[0].setup_s: must be"),
        ([{"name": "a", "curve": [[1, 2], [3]]}], "[0].curve[1][1]: missing"),
        ([{"name": "a", "curve": 5}], "[0].curve: must be a list; found 5"),
        ([{"name": "a", "curve": [[1, 2], [2, 1]]}], "[0]: point 1"),
        ([{**MACHINE, "cpu_ghz": 0}], "[0].cpu_ghz: must be greater than 0"),
        ([MACHINE], "'m' has parameters, not a curve"),
    ],
)
def test_nodes_that_are_wrong(balance, nodes, said):
    result = balance(nodes, "--total", 3)
    assert result.exit_code == 2
    assert "nodes.json" in result.stderr
    assert said in result.stderr.replace("\n", "")


def test_wrong_options(balance, reviewloop, tmp_path):
    assert balance(LINES, "--total", -1).exit_code == 2
    assert balance(LINES).exit_code == 2
    missing = reviewloop("balance", tmp_path / "none.json", "--total", 1)
    assert missing.exit_code == 2
    assert "none.json" in missing.stderr


def test_this_machine_has_a_core_and_writes(tmp_path):
    machine = this_machine(tmp_path)
    assert machine.cpu_cores >= 1
    assert machine.memory_gb > 0
    assert machine.disk_mbps is None or machine.disk_mbps > 0
    assert list(tmp_path.iterdir()) == []
    assert this_machine(tmp_path / "none").disk_mbps is None
