"""The file of sign-ins: encrypted, private, shared, and never lost to a wrong key."""

import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from patience import PATIENCE_S

from tasks.signin.errors import SignInFileUnreadable
from tasks.signin.granted import Granted, SignInFile

SECRET = "a secret of some length"
UNTIL = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "sign-ins"


def token(text):
    return Granted(UNTIL, (), text)


def test_what_is_kept_is_found_again_by_another_process(path):
    SignInFile(path, SECRET).save("a.com", token("t1"))
    SignInFile(path, SECRET).save("b.com", token("t2"))
    again = SignInFile(path, SECRET)
    assert again.load("a.com") == token("t1")
    assert again.load("b.com") == token("t2")
    assert again.load("c.com") is None


def test_nobody_else_can_read_it(path):
    path.touch(0o644)
    path.unlink()
    SignInFile(path, SECRET).save("a.com", token("t0ken-in-plain"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    content = path.read_bytes()
    assert b"t0ken" not in content
    assert b"a.com" not in content


def test_a_wrong_key_is_told_and_loses_nothing(path):
    SignInFile(path, SECRET).save("a.com", token("t1"))
    before = path.read_bytes()
    wrong = SignInFile(path, "another secret of some length")
    for act in (wrong.load, wrong.forget, lambda name: wrong.save(name, token("t2"))):
        with pytest.raises(
            SignInFileUnreadable, match="another REVIEWLOOP_SECRET_KEY, or is damaged"
        ) as caught:
            act("a.com")
        assert SECRET not in str(caught.value)
    assert path.read_bytes() == before
    assert sorted(each.name for each in path.parent.iterdir()) == ["sign-ins", "sign-ins.lock"]
    assert SignInFile(path, SECRET).load("a.com") == token("t1")


@pytest.mark.parametrize("content", [b"", b"my diary\nis here\n", b"reviewloop sign-ins 1\n???\nx"])
def test_another_file_is_not_overwritten(path, content):
    path.write_bytes(content)
    with pytest.raises(SignInFileUnreadable):
        SignInFile(path, SECRET).save("a.com", token("t1"))
    assert path.read_bytes() == content


def test_a_changed_byte_is_seen(path):
    SignInFile(path, SECRET).save("a.com", token("t1"))
    content = bytearray(path.read_bytes())
    content[-10] ^= 1
    path.write_bytes(content)
    with pytest.raises(SignInFileUnreadable):
        SignInFile(path, SECRET).load("a.com")


def test_forgetting_leaves_what_another_process_has_got_meanwhile(path):
    keep = SignInFile(path, SECRET)
    keep.save("a.com", token("new"))
    assert not keep.forget("a.com", only=token("old"))
    assert keep.load("a.com") == token("new")
    assert keep.forget("a.com", only=token("new"))
    assert not keep.forget("a.com")


def test_threads_that_write_at_once_lose_nothing(path):
    keeps = [SignInFile(path, SECRET) for _ in range(3)]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda n: keeps[n % 3].save(f"s{n}.com", token(str(n))), range(24)))
    assert [SignInFile(path, SECRET).load(f"s{n}.com") for n in range(24)] == [
        token(str(n)) for n in range(24)
    ]


def test_processes_that_write_at_once_lose_nothing(path):
    code = (
        "import sys; from pathlib import Path; from datetime import UTC, datetime\n"
        "from tasks.signin.granted import Granted, SignInFile\n"
        "keep, until = SignInFile(Path(sys.argv[1]), sys.argv[2]), datetime(2026, 5, 1, tzinfo=UTC)\n"
        "for n in range(10): keep.save(f'{sys.argv[3]}{n}.com', Granted(until, (), str(n)))\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, str(path), SECRET, who]) for who in "pq"]
    assert [process.wait(PATIENCE_S) for process in running] == [0, 0]
    keep = SignInFile(path, SECRET)
    kept = {who + str(n): keep.load(f"{who}{n}.com").bearer for who in "pq" for n in range(10)}
    assert kept == {who + str(n): str(n) for who in "pq" for n in range(10)}
