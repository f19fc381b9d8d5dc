"""What may take long is read in a process apart: it is ended in time, knows no secret, and outlives nobody."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hostile_pages import HostilePage, hostile_pages
from patience import PATIENCE_S, in_pieces, until
from reader_jobs import Job

from splitter.catalog.rules import PageRules
from tasks.domain.failures import ErrorClass, FetchError
from tasks.domain.pages import Response
from tasks.reading import page_jobs, reader_process
from tasks.reading.page_jobs import PageJob, run_together
from tasks.worker import page_reader
from tasks.worker.page_reader import PageReader, Turns

ROOT = Path(__file__).parents[2]
NOW = datetime(2026, 1, 1, tzinfo=UTC)
RULES = PageRules(review="div.r", body=".b")
REVIEW = b"<div class=r><p class=b>body</p></div>"
HOLD = 5.0
"""CPU time on the loop's own thread, in pieces of work (`in_pieces`): ten times what a page may hold it."""


@pytest.fixture(scope="module", autouse=True)
def _patient_start() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page_reader, "_START_S", PATIENCE_S)
        yield


@pytest.fixture(scope="module")
def reader() -> Iterator[PageReader]:
    with closing(PageReader(PATIENCE_S)) as reader:
        yield reader


def read(reader: PageReader, does: str) -> str:
    return asyncio.run(reader.read(Job(does)))


def outcome(reader: PageReader, does: str) -> tuple[ErrorClass, str]:
    with pytest.raises(FetchError) as caught:
        read(reader, does)
    return caught.value.error, caught.value.detail


def test_the_process_reads_by_the_rules_that_it_learned(reader):
    def job(number: int, texts: list[str]) -> PageJob:
        posts = "".join(
            f"<div class=post><a class=author href=/u/{n}>member{number}{n}x</a> <i class=day>2025-11-{10 + n}</i>"
            f"<div class=text>{text}</div></div>"
            for n, text in enumerate(texts)
        )
        body = f"<title>Kettle lid</title><body><h1>Kettle lid</h1>{posts}".encode()
        url = f"https://forum.example.org/thread/{number}.html"
        return PageJob(body=body, headers={}, url=url, now=NOW, rules=PageRules(main_text=True), hint="utf-8")

    texts = ["My lid came off.", "Glue the hinge of it.", "A new one costs five euros.", "It fits, thanks."]
    for number in range(3):
        read, _ = asyncio.run(reader.read(job(number, texts)))
        assert [one.body for one in read.reviews] == texts
    # The full reader takes a text that half of the posts hold for the template's.
    often = job(3, ["My lid came off.", "Me too.", "Me too.", "It fits, thanks."])
    (in_full, _), (by_rules, _) = often.read(), asyncio.run(reader.read(often))
    assert (len(in_full.reviews), len(by_rules.reviews)) == (2, 4)


@pytest.mark.parametrize(
    ("does", "why"),
    [
        ("crashes", "SIGSEGV"),
        ("eats memory", "MB"),
        ("fails", "ValueError: of its own"),
    ],
)
def test_what_can_t_be_read_has_its_outcome_and_the_next_page_is_read(reader, does, why):
    error, detail = outcome(reader, does)
    assert error is ErrorClass.UNREADABLE
    assert why in detail
    assert read(reader, "pid").isdigit()


def test_a_page_that_takes_too_long_has_its_outcome_and_the_next_one_is_read():
    with closing(PageReader(patience_s=0.5)) as hasty:
        error, detail = outcome(hasty, "never ends")
        assert (error, "more than 0.5 s of CPU" in detail) == (ErrorClass.UNREADABLE, True)
        hasty._patience_s = PATIENCE_S
        assert read(hasty, "pid").isdigit()


def test_a_page_that_its_own_process_gave_up_first_took_too_long_as_well():
    with closing(PageReader(PATIENCE_S)) as reader:
        assert outcome(reader, "is late") == (
            ErrorClass.UNREADABLE,
            f"reading 4 bytes took more than {PATIENCE_S:g} s of CPU",
        )


def test_cpu_time_counts_and_waiting_does_not():
    """On a busy machine, an ordinary page waits for the CPU longer than it computes."""
    with closing(PageReader(patience_s=PATIENCE_S)) as reader:
        on_the_clock, of_cpu = map(float, read(reader, "timers").split())
    assert on_the_clock == 0
    assert 0 < of_cpu <= PATIENCE_S + 1  # the kernel rounds up


def test_a_reader_that_does_nothing_is_given_up_by_the_clock(monkeypatch):
    with closing(PageReader(PATIENCE_S)) as reader:
        assert read(reader, "pid").isdigit()
        monkeypatch.setattr(page_reader, "LONGEST_S", 0.05)
        assert outcome(reader, "waits") == (ErrorClass.UNREADABLE, "reading 4 bytes took longer than 0.05 s")
        monkeypatch.undo()
        assert read(reader, "pid").isdigit()


def test_hosts_take_turns():
    turns = Turns()
    for number in range(8):
        turns.add(Job(f"bad {number}", url="http://bad.cn/"))
    turns.add(Job("good", url="http://good.cn/"))
    turns.add(Job("bad 8", url="http://bad.cn/"))
    done = []
    while (turn := turns.take()) is not None:
        done.append(turn[0].does)
    assert done == ["bad 0", "good", *(f"bad {number}" for number in range(1, 9))]


def test_a_host_that_was_just_served_waits_for_the_others():
    turns = Turns()
    turns.add(Job("bad 0", url="http://bad.cn/"))
    assert turns.take() is not None
    turns.add(Job("bad 1", url="http://bad.cn/"))
    turns.add(Job("good", url="http://good.cn/"))
    assert [turn[0].does for _ in range(2) if (turn := turns.take()) is not None] == ["good", "bad 1"]
    assert turns.take() is None


@pytest.mark.slow
def test_a_good_page_behind_8_bad_ones_waits_for_one_of_them():
    """Each bad page takes all of its CPU time; with 4.5 s for a page, the good one waits for at most 5 s."""
    done: list[str] = []

    async def one(job: Job) -> None:
        with suppress(FetchError):
            await reader.read(job)
        done.append(job.does)

    async def all_of_them() -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(8):
                group.create_task(one(Job("never ends", url="http://bad.cn/")))
            group.create_task(one(Job("pid", url="http://good.cn/")))

    with closing(PageReader(patience_s=0.1)) as reader:
        asyncio.run(all_of_them())
    assert done.index("pid") == 1
    assert len(done) == 9


def test_errors_of_a_page_come_back_as_they_are(reader):
    assert outcome(reader, "refuses") == (ErrorClass.BAD_RULE, "nothing there")


def test_the_first_page_that_needs_it_starts_it(monkeypatch):
    started = []
    popen = subprocess.Popen
    monkeypatch.setattr(
        subprocess, "Popen", lambda *args, **named: started.append(args) or popen(*args, **named)
    )
    with closing(PageReader(PATIENCE_S)) as reader:
        reader.start()
        reader._asking.submit(lambda: None).result(PATIENCE_S)
        assert not started
        assert read(reader, "pid").isdigit()
        assert len(started) == 1


def test_one_process_does_one_job_after_the_other(reader):
    assert read(reader, "pid") == read(reader, "pid") != str(os.getpid())


def test_it_knows_no_secret(monkeypatch):
    monkeypatch.setenv("REVIEWLOOP_SECRET_KEY", "secret")
    with closing(PageReader(PATIENCE_S)) as fresh:
        assert "REVIEWLOOP" not in read(fresh, "environment")


def test_a_page_that_ends_the_process_is_read_twice_at_most(reader):
    assert outcome(reader, "leaves") == (
        ErrorClass.UNREADABLE,
        "the reader ended twice before it had read the page",
    )


@pytest.mark.skipif(not Path("/proc").exists(), reason="looks at /proc")
def test_a_process_that_ended_while_idle_is_replaced(reader):
    pid = int(read(reader, "pid"))
    os.kill(pid, signal.SIGTERM)
    until(lambda: not alive(pid))
    assert int(read(reader, "pid")) != pid


def test_usual_pages_are_read_where_they_came_in(reader):
    response = Response(url="http://a.cn/", status=200, headers={}, body=REVIEW * 30, elapsed_s=0.0)
    with closing(PageReader(patience_s=0.0)) as here:  # who has no patience can read nothing apart
        page, encoding = asyncio.run(here.read(PageJob.from_response(response, NOW, rules=RULES, hint="")))
    assert (len(page.reviews), encoding) == (30, "utf-8")


def test_of_pages_that_are_read_together_one_fails_alone(monkeypatch):
    def judge(pages, *_):
        if any("falls" in review.body for page in pages for review in page):
            raise ValueError("of its own")
        sizes.append(len(pages))
        return [*map(tuple, pages)]

    sizes: list[int] = []
    monkeypatch.setattr(page_jobs, "add_judgements_of_pages", judge)
    jobs = [
        PageJob(body=body, headers={}, url="http://a.cn/", now=NOW, rules=RULES, hint="", category=category)
        for body, category in (
            (REVIEW, None),
            (REVIEW.replace(b"body", b"falls"), None),
            (b"%PDF-1.7", None),
            (REVIEW * 2, None),
            (REVIEW * 3, "car"),
            (REVIEW * 4, "car"),
        )
    ]
    found = run_together(jobs)
    assert [one.error if isinstance(one, FetchError) else len(one[0].reviews) for one in found] == [
        1,
        ErrorClass.UNREADABLE,
        ErrorClass.BAD_CONTENT,
        2,
        3,
        4,
    ]
    assert sizes == [1, 1, 2]


@pytest.mark.parametrize("does", ["pid", "refuses", "timers", "environment", "leaves"])
def test_a_reader_whose_parent_is_gone_ends_without_a_word(does):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        process = subprocess.Popen(
            [sys.executable, "-c", "from tasks.reading.reader_process import main; main()"],
            cwd=ROOT,
            env={"PYTHONPATH": f"{ROOT}:{ROOT / 'tests' / 'worker'}"},
            stdin=theirs.fileno(),
            stderr=subprocess.PIPE,
        )
        assert ours.recv(1) == reader_process.READY
        reader_process.send(ours, pickle.dumps((PATIENCE_S, Job(does))))
    assert process.communicate(timeout=PATIENCE_S) == (None, b"")
    assert process.returncode == 0


PARENT = """
import asyncio, sys
sys.path[:0] = ["tests/worker"]
from reader_jobs import Job
from tasks.worker import page_reader
from tasks.worker.page_reader import PageReader

page_reader._START_S = 600.0

async def main():
    reader = PageReader(patience_s=600.0)
    print(await reader.read(Job("pid")), flush=True)
    reader._patience_s = 2.0  # what the process apart is given for the next page, whoever waits for it
    await reader.read(Job(sys.argv[1])) if sys.argv[1] else await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").exists(), reason="looks at /proc")
@pytest.mark.parametrize("does", ["", "never ends"], ids=["idle", "in the midst of a page"])
def test_it_ends_with_a_parent_that_is_killed(does):
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, does], stdout=subprocess.PIPE, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}
    )
    assert parent.stdout is not None
    with parent.stdout as said:
        child = int(said.readline())
    if does:
        before = cpu_ticks(child)
        until(lambda: cpu_ticks(child) > before + 2 or not alive(child))  # it has begun
    parent.kill()
    parent.wait()
    until(lambda: not alive(child))


def cpu_ticks(pid: int) -> int:
    """CPU time of a process so far, in ticks; 0 where it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(fields[11]) + int(fields[12])


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.fixture(scope="module")
def patient() -> Iterator[PageReader]:
    with closing(PageReader(4 * page_reader.PATIENCE_S)) as reader:  # two tests may share a slow core
        yield reader


@pytest.mark.parametrize("page", hostile_pages(), ids=lambda page: page.name)
def test_hostile_pages_hold_nobody_up(patient: PageReader, page: HostilePage):
    async def cpu_s() -> float:
        began = time.thread_time()
        try:
            await page.read_by(patient)
        except FetchError as error:
            assert error.error in (  # noqa: PT017
                ErrorClass.BAD_RULE,
                ErrorClass.TOO_LARGE,
                ErrorClass.BAD_CONTENT,
                ErrorClass.UNREADABLE,
            )
        return time.thread_time() - began

    assert in_pieces(asyncio.run(cpu_s())) < HOLD
