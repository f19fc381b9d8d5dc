import sys
from pathlib import Path

import pytest

from research.bench import coroutines
from research.bench.coroutine_peers.contest import median_of
from research.bench.coroutine_peers.window import Moment, Order, check_size, told
from research.bench.coroutines import kb_per_connection, megabytes
from research.tools import plots
from splitter.errors import InputError


def test_a_window_is_told_by_what_happened_within_it() -> None:
    opened = Moment(at_s=10.0, pages=100, cpu_s=1.0, voluntary=50, involuntary=5)
    half = Moment(at_s=12.0, pages=200, cpu_s=1.1, voluntary=60, involuntary=5)
    ended = Moment(at_s=14.0, pages=500, cpu_s=1.4, voluntary=850, involuntary=9)
    figures = told([opened, half, ended], 42.0)
    assert figures.pages_per_s == 100.0
    assert figures.cpu_us_per_page == pytest.approx(1000.0)
    assert figures.voluntary_per_page == 2.0
    assert figures.involuntary_per_page == 0.01
    assert figures.peak_mb == 42.0
    assert figures.pages_at == ((2.0, 100), (4.0, 400))


def test_a_window_without_a_page_is_an_error() -> None:
    moment = Moment(1.0, 7, 0.0, 0, 0)
    with pytest.raises(RuntimeError, match="not one page"):
        told([moment, moment], 1.0)


def test_a_page_of_another_size_is_an_error() -> None:
    order = Order(port=1, lanes=1, window_s=1.0, samples=1, body_bytes=20)
    check_size(20, order)
    with pytest.raises(RuntimeError, match="19 bytes"):
        check_size(19, order)


def test_the_median_is_taken_number_by_number_and_the_rounds_stay() -> None:
    rounds = [
        {"pages_per_s": 30.06, "peak_mb": 5.0, "pages_at": [(1.0, 1)]},
        {"pages_per_s": 10.0, "peak_mb": 9.12345, "pages_at": [(1.0, 1)]},
        {"pages_per_s": 20.0, "peak_mb": 7.0, "pages_at": [(1.0, 1)]},
    ]
    assert median_of(iter(rounds)) == {
        "pages_per_s": 20.0,
        "peak_mb": 7.0,
        "rounds_pages_per_s": [30.1, 10.0, 20.0],
    }


def test_megabytes_of_pages() -> None:
    assert megabytes(1000) == pytest.approx(20.48)


def test_what_a_connection_takes_is_the_slope_from_end_to_end() -> None:
    assert kb_per_connection([(10, 37.0), (500, 1.0), (1010, 87.0)]) == 50.0


def test_a_plot_is_a_png(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="plots need the extra `bench`")
    path = tmp_path / "new" / "one.png"
    plots.lines(path, "t", "x", "y", {"a": [(0, 0), (1, 2)], "limit": [(0, 1), (1, 1)]}, "shows nothing")
    assert path.read_bytes().startswith(b"\x89PNG")


def test_too_few_open_files_are_told_before_anything_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("research.bench.coroutines.resource.getrlimit", lambda kind: (1024, 4096))
    with pytest.raises(InputError, match="10100 open files and this system allows 4096"):
        coroutines.run(Path())


def test_plots_without_matplotlib_name_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match="make research"):
        plots.check_there()
