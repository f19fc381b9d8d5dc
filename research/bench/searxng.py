"""A crawl through a real SearXNG: its own code, the settings of docker-compose.yml, its engines answered by the lab.

REVIEWLOOP_TEST_SEARXNG names a folder with SearXNG's source and, in `.venv`, what its requirements.txt asks for.
A proxy (`research.tools.webproxy`) leads what SearXNG and the crawl ask for to a lab in a process of its own.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests
import yaml

from app.run.preflight import SEARXNG_MEND
from app.run.searxng import probe
from app.run.settings import Settings, as_environment, folder_of
from app.run.version import ROOT
from research.bench.registry import FOLDER_OF_SEARXNG
from research.tools.labs import lab_process
from research.tools.webproxy import web_proxy
from splitter.errors import ReviewloopError
from splitter.query import product_query
from splitter.urls import search_url
from tasks.domain.failures import FetchError
from tasks.reading.results import read_results

NAMES = ("光明高钙牛奶", "特仑苏")
SITES = ("12315.com", "ccn.com.cn", "foodmate.net", "people.com.cn")
SECONDS = 120.0
_START_S = 60.0
_BLOCKED = "www.baidu.com"


def run(shared: Path) -> dict[str, Any]:  # noqa: ARG001 - every bench is called alike
    """Crawl once with every engine answering; search once with one engine blocked, and once with all.

    Returns:
        ``ratios``: share of the subtasks that are DONE, and of hits that are stored; ``figures``: engines, requests by
        host, what found rests on, and for each of the searches its hits, or what is said instead.
    """
    source = Path(folder_of(FOLDER_OF_SEARXNG))
    crawled = _crawl(source)
    return {
        "bench": "searxng",
        "ratios": {"done": crawled["done"], "stored_of_hits": crawled["stored_of_hits"]},
        "figures": {
            "crawl": crawled,
            "one_blocked": _search(source, [_BLOCKED]),
            "all_blocked": _search(source, ["*"]),
        },
    }


def shipped_settings() -> dict[str, Any]:
    """The settings of the SearXNG in docker-compose.yml."""
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
    settings: dict[str, Any] = yaml.safe_load(compose["configs"]["searxng"]["content"])
    return settings


@contextmanager
def searxng(source: Path, folder: Path, proxy: tuple[str, int], port: int) -> Iterator[str]:
    """Run SearXNG with the shipped settings behind a proxy; its address.

    Raises:
        ReviewloopError: it did not answer within a minute.
    """
    settings = shipped_settings()
    settings["server"] |= {"port": port, "bind_address": "127.0.0.1", "secret_key": "of-this-bench-alone"}
    settings.setdefault("outgoing", {})
    settings["outgoing"] |= {"verify": False, "proxies": {"all://": ["http://{}:{}".format(*proxy)]}}
    file, log = folder / "settings.yml", folder / "searxng.log"
    file.write_text(yaml.safe_dump(settings, allow_unicode=True), "utf-8")
    environment = {**as_environment(Settings()), "SEARXNG_SETTINGS_PATH": str(file)}
    python = source / ".venv" / "bin" / "python"
    with (
        log.open("wb") as out,
        subprocess.Popen(
            [python, "-m", "searx.webapp"], cwd=source, env=environment, stdout=out, stderr=out
        ) as process,
    ):
        try:
            _wait(process, port, log)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    until = time.monotonic() + _START_S
    while time.monotonic() < until and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise ReviewloopError(f"SearXNG did not start: {log.read_text('utf-8', 'replace')[-2000:]}")


@contextmanager
def _behind_a_lab(source: Path, profile: dict[str, Any]) -> Iterator[tuple[Path, str, str, Any]]:
    """A lab, a proxy to it and a SearXNG: a folder, the addresses of SearXNG and proxy, requests by host."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = folder / "profile.yaml"
        file.write_text(yaml.safe_dump({"name": "searxng", **profile}), "utf-8")
        own = {f"127.0.0.1:{port}": ("127.0.0.1", port)}
        with (
            lab_process(str(file), sites=str(ROOT / "sites.yaml")) as lab,
            web_proxy(lab, own) as (proxy, asked),
            searxng(source, folder, proxy, port) as address,
        ):
            yield folder, address, "http://{}:{}".format(*proxy), asked


def _hurried(folder: Path) -> Path:
    """The catalog with limits that hold nobody up: what is asked counts here, not how soon."""
    catalog = yaml.safe_load((ROOT / "sites.yaml").read_text("utf-8"))
    for entry in (*catalog["engines"].values(), *catalog["sites"].values()):
        entry["limits"] = {"per_address_per_s": 20, "total_per_s": 20}
    file = folder / "sites.yaml"
    file.write_text(yaml.safe_dump(catalog, allow_unicode=True), "utf-8")
    return file


def _crawl(source: Path) -> dict[str, Any]:
    with _behind_a_lab(source, {}) as (folder, address, proxy, asked):
        database = f"sqlite:///{folder}/run.db"
        settings = Settings(
            database_url=database, sites=str(_hurried(folder)), searxng_url=address, proxy=proxy, seed=1
        )
        sites = [word for site in SITES for word in ("--site", site)]
        command = [
            sys.executable,
            "-m",
            "app",
            "run",
            "--until-done",
            "--for",
            str(SECONDS),
            "--json",
            *sites,
            *NAMES,
        ]
        ran = subprocess.run(
            command, env=as_environment(settings), cwd=folder, capture_output=True, text=True
        )
        if not ran.stdout:
            raise ReviewloopError(f"the crawl ended with {ran.returncode}: {ran.stderr[-2000:]}")
        told = json.loads(ran.stdout)
        catalog = settings.catalog()
        answer = probe(catalog.engines["searxng"], settings.crawl(), SEARXNG_MEND)
        status = subprocess.run(
            [sys.executable, "-m", "app", "status", "--json", "--db", database],
            env=as_environment(settings), cwd=folder, capture_output=True, text=True, check=True,
        )  # fmt: skip
        targets = told["targets"]
        subtasks = sum(told["queues"].values())
        return {
            "engines": answer.engines,
            "version": answer.version,
            "done": round(told["queues"]["DONE"] / subtasks, 4),
            "stored_of_hits": round(targets.get("stored", 0) / max(1, sum(targets.values())), 4),
            "pages": told["pages"],
            "reviews": told["reviews"],
            "targets": targets,
            "seconds": told["seconds"],
            "found_rests_on": json.loads(status.stdout)["coverage_rests_on"],
            "manual": [row["reason"] for row in told["waits_for_a_person"]],
            "requests": dict(asked.most_common(20)),
        }


def _search(source: Path, blocked: list[str]) -> dict[str, Any]:
    """What one search brings where these hosts answer with a captcha."""
    pairs = [{"role": "engine", "host": host, "faults": {"captcha": 1.0}} for host in blocked]
    with _behind_a_lab(source, {"pairs": pairs}) as (_, address, _, _):
        engine = Settings(sites=str(ROOT / "sites.yaml"), searxng_url=address).catalog().engines["searxng"]
        url = search_url(engine, product_query(NAMES[0]).keywords, site=SITES[0], page=1)
        text = requests.get(url, timeout=30).text
        silent = dict(json.loads(text)["unresponsive_engines"])
        try:
            return {"hits": len(read_results(text, url, engine.results).hits), "silent": silent}
        except FetchError as error:
            return {"refused": str(error.error), "said": str(error), "silent": silent}
