"""Every bench at its smallest size, printed both ways, and the file of their ratios."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from app.cli.main import cli
from research.bench import results
from research.bench.registry import BENCHES, LOWER_IS_BETTER, function
from research.commands.bench import show

SHARED = Path(__file__).parents[4] / "shared" / "data"
NEED_SHARED = ("balance", "proximity")
CONTRACT = {
    "splitter": {"names_per_s"},
    "crawl": {
        "vs_scrapy",
        "vs_scrapy_marginal",
        "vs_scrapy_without_judging",
        "vs_crawlee",
        "vs_crawlee_marginal",
    }
    | {"vs_requests_bs4", "of_limit", "of_limit_marginal", "writing_vs_raw_sqlite"},
    "coroutines": {"vs_requests_threads_10", "memory_vs_own_threads_10", "rss_mb_100"},
    "buffers": {"both_10ms_vs_0ms", "both_90ms_vs_0ms", "both_vs_none_10ms", "vs_scrapy_redis_10ms"},
    "politeness": {"max_over_limit_10s", "used_of_limit"},
    "strategies": {"still.feedback.oracle_ratio"},
    "scale": {"cost_1e6_vs_1e3", "decisions_per_s_memory", "decisions_per_s_postgres"},
    "field": {f"scarce.feedback.{name}" for name in ("pages_of_bound", "requests_per_page", "done_of_bound")},
}
"""Names of ratios that other programs read."""


def bench(*arguments: str) -> object:
    return CliRunner().invoke(cli, ["bench", *arguments])


@pytest.mark.parametrize("name", BENCHES)
def test_a_bench_runs_at_its_smallest_and_is_printed_both_ways(name, capsys):
    if name in NEED_SHARED and not SHARED.is_dir():
        ran = bench(name, "--smallest")
        assert ran.exit_code == 2
        assert "--shared" in ran.stderr
        return
    result = function(name)(SHARED, True)
    assert result["bench"] == name
    assert result["ratios"]
    assert CONTRACT.get(name, set()) <= result["ratios"].keys()
    capsys.readouterr()
    show(result, as_json=True)
    assert json.loads(capsys.readouterr().out)["ratios"].keys() == result["ratios"].keys()
    show(result, as_json=False)
    printed = capsys.readouterr().out
    assert all(ratio in printed for ratio in result["ratios"])


def test_every_module_with_a_run_is_a_bench():
    research = Path(results.__file__).parents[1]
    files = [path.relative_to(research) for path in research.rglob("*.py") if "tests" not in path.parts]
    with_run = {
        ".".join(path.with_suffix("").parts)
        for path in files
        if "\ndef run(" in (research / path).read_text("utf-8")
    }
    assert {module for module, _ in BENCHES.values()} == with_run - {"chaos.run"}
    assert LOWER_IS_BETTER.keys() <= BENCHES.keys()


@pytest.mark.parametrize(
    ("ratio", "now", "before", "worse"),
    [
        ("vs_scrapy", 1.79, 2.0, True),
        ("vs_scrapy", 1.81, 2.0, False),
        ("vs_scrapy", None, 2.0, True),
        ("vs_scrapy", None, None, False),
        ("cost_1e6_vs_1e3", 1.2, 1.0, True),
        ("cost_1e6_vs_1e3", 0.5, 1.0, False),
    ],
)
def test_a_ratio_is_worse_if_it_fell_by_more_than_a_tenth(ratio, now, before, worse):
    assert results.is_worse("scale", ratio, now, before) is worse


def test_all_against_an_earlier_file_exits_1_if_a_ratio_fell(tmp_path):
    earlier, output = tmp_path / "before.json", tmp_path / "now.json"
    found = {"bench": "splitter", "ratios": {"names_per_s": 1e9}}
    results.write(earlier, {"splitter": results.record(found, smallest=True, seconds=0.5)})
    arguments = ["all", "--only", "splitter", "--smallest", "--json"]
    ran = bench(*arguments, "--against", str(earlier))
    assert ran.exit_code == 1
    assert json.loads(ran.stdout)["fallen"][0].startswith("splitter: names_per_s was 1000000000.0")
    assert bench(*arguments, "-o", str(output)).exit_code == 0
    assert results.read(output)["splitter"]["size"] == "smallest"


def test_runs_of_different_size_are_not_compared():
    small = results.record({"ratios": {"a": 1}}, smallest=True, seconds=0.5)
    whole = results.record({"ratios": {"a": 9}}, smallest=False, seconds=9.0)
    assert not list(results.fallen({"seen": small}, {"seen": whole}))


def test_the_table_of_the_document_is_that_of_the_file():
    text = results.DOCUMENT.read_text("utf-8")
    assert results.table(text, results.read(results.FILE)) == text, "python -m research.bench.results"


def test_the_command_prints_one_document():
    printed = json.loads(bench("splitter", "--smallest", "--json").stdout)
    assert set(printed) == {"bench", "ratios", "figures"}
    assert "names_per_s" in bench("splitter", "--smallest").stdout


def test_help_lists_every_bench_and_a_wrong_name_is_refused():
    printed = bench("--help").stdout
    assert all(name in printed for name in BENCHES)
    assert bench("none").exit_code == 2
    assert bench("field", "--regime", "scarse", "--smallest").exit_code == 2
