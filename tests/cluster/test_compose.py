"""docker-compose.yml without Docker: its commands are real, its secrets required, its ports closed."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from app.cluster.broker import make_app
from app.config import Settings, from_environment
from splitter.catalog.load import load_catalog
from tasks.jobs.celery_tasks import CONTROL, node_of

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
SERVICES = yaml.safe_load(TEXT)["services"]
OURS = {name: service for name, service in SERVICES.items() if service["image"] == "reviewloop"}
CELERY = {name: service["command"] for name, service in OURS.items() if service["command"][0] == "celery"}
WORKERS = {name: command for name, command in CELERY.items() if command[3] == "worker"}


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


def test_the_settings_they_are_given_are_a_clusters():
    values = {"POSTGRES_PASSWORD": "p1", "REDIS_PASSWORD": "p2"}
    for service in OURS.values():
        environment = {name: filled(text, values) for name, text in service["environment"].items()}
        settings = from_environment(environment)
        assert make_app(settings).conf.broker_url == "redis://:p2@redis:6379/0"
        assert settings.database_url == "postgresql+psycopg2://reviewloop:p1@postgres/reviewloop"
    assert filled(SERVICES["postgres"]["environment"]["POSTGRES_PASSWORD"], values) == "p1"
    assert filled(SERVICES["redis"]["environment"]["REDIS_PASSWORD"], values) == "p2"


def test_no_password_has_a_default():
    asked = re.findall(r"\$\{(\w*PASSWORD)(:?[-?+]?)", TEXT)
    asked += re.findall(r"\$\{(\w*SECRET)(:?[-?+]?)", TEXT)
    assert {name for name, _ in asked} == {"POSTGRES_PASSWORD", "REDIS_PASSWORD", "SEARXNG_SECRET"}
    assert {operator for _, operator in asked} == {":?"}
    for name, service in SERVICES.items():
        for key, text in service["environment"].items():
            if (
                "PASSWORD" in key
                or "SECRET" in key
                or key in ("REVIEWLOOP_DATABASE_URL", "REVIEWLOOP_REDIS_URL")
            ):
                assert "refused: write" in filled(text, {}), (name, key)


def test_nothing_is_published_beyond_the_host():
    for service in SERVICES.values():
        assert all(str(port).startswith("127.0.0.1:") for port in service.get("ports", []))
        assert service.get("network_mode") != "host"
        assert not service.get("privileged")


def test_everything_waits_for_what_it_needs():
    for name, service in OURS.items():
        for needed, how in service["depends_on"].items():
            expected = "service_completed_successfully" if needed == "migrate" else "service_healthy"
            assert how["condition"] == expected, name
            assert needed == "migrate" or "healthcheck" in SERVICES[needed]
        assert service["read_only"]
        assert service["cap_drop"] == ["ALL"]
    assert {name for name, s in OURS.items() if "migrate" in s["depends_on"]} == OURS.keys() - {"migrate"}
    assert {name for name, s in SERVICES.items() if s["restart"] == "no"} == {"migrate"}


def test_the_image_has_what_the_commands_need_and_is_not_root():
    steps = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    copied = {word for line in re.findall(r"^COPY (.+)$", steps, re.MULTILINE) for word in line.split()[:-1]}
    assert all((ROOT / path).exists() for path in copied)
    packages = {"app", "tasks", "splitter", "migrations", "bench"}
    assert packages <= copied
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert ignored[0] == "*"
    assert {f"!{path}" for path in copied} <= set(ignored)
    assert re.search(r"^USER (?!root)\w+$", steps, re.MULTILINE)


@pytest.mark.parametrize("name", [field.name for field in fields(Settings)])
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
    nodes = from_environment(
        {"REVIEWLOOP_SEARXNG_URL": SERVICES["node1"]["environment"]["REVIEWLOOP_SEARXNG_URL"]}
    )
    asked = replace(nodes, sites=str(ROOT / "sites.yaml")).catalog().engines["searxng"]
    assert asked.url == "http://searxng:8080/search"
    assert asked.results == catalog.engines["searxng"].results
