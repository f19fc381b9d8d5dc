"""Every bench at its smallest size, printed both ways; those that need the shared data say so where it is not there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from patience import patient_with_chromium

from app.cli.main import cli
from research.bench import results
from research.bench.registry import BENCHES, DESCRIBED, Bench
from research.commands.bench import show
from splitter.errors import InputError

SHARED = Path(__file__).parents[4] / "shared" / "data"


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    patient_with_chromium(monkeypatch)


@pytest.mark.parametrize("bench", BENCHES.values(), ids=lambda bench: bench.name)
def test_a_bench_runs_at_its_smallest_and_is_printed_both_ways(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    if bench.missing(SHARED):
        with pytest.raises(InputError, match=DESCRIBED):
            bench.run(SHARED, smallest=True)
        return
    result = bench.run(SHARED, smallest=True)
    assert result["bench"] == bench.name
    assert result["ratios"]
    capsys.readouterr()
    show(result, as_json=True)
    assert json.loads(capsys.readouterr().out)["ratios"].keys() == result["ratios"].keys()
    show(result, as_json=False)
    printed = capsys.readouterr().out
    assert all(ratio in printed for ratio in result["ratios"])


def test_every_module_with_a_run_is_a_bench() -> None:
    folder = Path(results.__file__).parent
    modules = {path.stem: path for path in folder.glob("*.py")}
    modules |= {path.parent.name: path for path in folder.glob("*/__init__.py")}
    with_run = {name for name, path in modules.items() if "\ndef run(" in path.read_text("utf-8")}
    assert with_run == set(BENCHES)


@pytest.mark.parametrize(
    ("ratio", "now", "before", "worse"),
    [
        ("vs_scrapy", 1.79, 2.0, True),
        ("vs_scrapy", 1.81, 2.0, False),
        ("vs_scrapy", 3.0, 2.0, False),
        ("vs_scrapy", None, 2.0, True),
        ("vs_scrapy", None, None, False),
        ("cost_1e6_vs_1e3", 1.2, 1.0, True),
        ("cost_1e6_vs_1e3", 0.5, 1.0, False),
    ],
)
def test_a_ratio_is_worse_where_it_fell_by_more_than_a_tenth(
    ratio: str, now: float | None, before: float | None, worse: bool
) -> None:
    assert results.is_worse(BENCHES["scale"], ratio, now, before) is worse


def test_all_against_an_earlier_file_exits_1_where_a_ratio_fell(tmp_path: Path) -> None:
    path = tmp_path / "before.json"
    found = {"bench": "seen", "ratios": {"questions_40_vs_1": 1e9}}
    results.write(path, {"seen": results.record(found, smallest=True, seconds=0.5)})
    arguments = ["bench", "all", "--only", "seen", "--smallest", "--shared", str(tmp_path), "--json"]
    ran = CliRunner().invoke(cli, [*arguments, "--against", str(path)])
    assert ran.exit_code == 1
    assert json.loads(ran.stdout)["fallen"][0].startswith("seen: questions_40_vs_1 was 1000000000.0")
    assert CliRunner().invoke(cli, arguments).exit_code == 0


def test_runs_of_different_size_are_not_compared() -> None:
    small = results.record({"ratios": {"a": 1}}, smallest=True, seconds=0.5)
    whole = results.record({"ratios": {"a": 9}}, smallest=False, seconds=9.0)
    assert not list(results.fallen({"seen": small}, {"seen": whole}))


def test_the_tables_of_the_document_are_those_of_the_file() -> None:
    text = results.DOCUMENT.read_text("utf-8")
    assert results.tables(text, results.read(results.FILE)) == text, "python -m research.bench.results"
