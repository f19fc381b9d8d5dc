"""`reviewloop demo`: a crawl on the built-in lab, from four product names to their reviews, in a minute."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import mkdtemp
from threading import Event
from typing import Any

import click
from rich.text import Text

from app.actions import product_actions
from app.actions.products import new_products
from app.cli.command import App, command
from app.cli.crawl.crawling import watch
from app.cli.crawl.run_end import list_count_parts, list_sample_parts
from app.cli.inspect.web import running_dashboard, say_dashboard
from app.cli.options import database_hint
from app.cli.output import make_console
from app.cli.people.pairs import pair_matrices
from app.cli.render import Part, print_parts, text
from app.reports.summary import RunView, samples
from app.run.nodes import make_nodes
from app.run.setting_fields import Settings
from app.run.setting_values import database
from app.run.version import DEFAULT_DATABASE
from app.views.fields import extend_row, format_counts
from app.views.words import translate
from splitter.keywords import product_query
from tasks.store.verify.verify import Verification, verify

PRODUCTS = ("光明高钙牛奶", "特仑苏", "蒙牛早餐奶", "雀巢中老年奶粉")
NODES = 4
SLOTS = 8
LONGEST_S = 90.0

SHORTENED: dict[str, Any] = {
    "silent_after_s": 12.0,
    "request_timeout_s": 6.0,
    "backoff_s": 0.5,
    "most_unanswered": 6,
    "rest_factor": 0.01,
}
"""Settings with shorter times, so that a dead site is reported to a person within a minute."""

_CATALOG = "paper-2014"


@dataclass(frozen=True, slots=True)
class SplitName:
    """A product name with its keywords."""

    product: str
    keywords: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class DemoView(RunView):
    """The results of a demo.

    Attributes:
        verify: result of the check that the loop kept its invariants.
        shortened: the settings of `SHORTENED`.
    """

    split: Sequence[SplitName]
    verify: Verification
    shortened: Mapping[str, float]
    database: str


@command(None, "demo")
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the allocation.")
@click.option("--web", is_flag=True, help="Serve the dashboard while it runs, and afterwards until Ctrl-C.")
def demo(app: App, seed: int, web: bool) -> DemoView | None:
    """Watch the whole loop on a local web, in a minute.

    It crawls four dairy products with four nodes. Search engines, complaint sites and microblogs are
    simulated on loopback and see each node as another client. The database is a new one in a temporary
    folder, unless --db names one, and stays there to be looked at.

    \b
    Examples:
      reviewloop demo
      reviewloop demo --web
    """
    given = app.options["db"] or f"{mkdtemp(prefix='reviewloop-demo-')}/{Path(DEFAULT_DATABASE).name}"
    app.context.params["db"] = database(given)  # for suggested commands
    # The demo ignores settings in the environment.
    app.settings = Settings(database_url=database(given), sites=_CATALOG, slots=SLOTS, seed=seed, **SHORTENED)
    if not app.as_json:
        print_parts(make_console(), _introduce(app.settings))
    view = _crawl(app, web=web)
    if view.verify.violations or not view.is_settled:
        app.exit_status = 1
    return view if not web else None


def _crawl(app: App, *, web: bool) -> DemoView:
    """Add the products, start a new lab, and crawl until all work is settled."""
    # Slow to import (aiohttp, APScheduler), and only needed here.
    from app.lab.running import running_lab
    from app.run.embedded import crawl
    from app.run.open_store import open_store
    from app.run.process import Until
    from tasks.store.queries.reviews import list_reviews

    with ExitStack() as stack:
        lab = stack.enter_context(running_lab(app.settings.catalog(), "demo", reviews=None))
        settings = app.settings = app.settings.replace(lab=(lab.host, lab.port))
        store = stack.enter_context(open_store(settings))
        address = stack.enter_context(running_dashboard(settings, store, "127.0.0.1")) if web else ""
        product_actions.add(store, new_products(PRODUCTS), app.who)
        rows = make_nodes(NODES, settings.slots, lab=True)
        until = Until(done=True, seconds=LONGEST_S)
        done = watch(app, store, NODES, lambda show: crawl(settings, store, rows, until, show))
        with store.read() as tx:
            done = replace(done, samples=samples(list_reviews(tx)))  # also of earlier runs
            verification = verify(tx)
        view = extend_row(
            DemoView,
            done,
            split=[SplitName(name, product_query(name).keywords) for name in PRODUCTS],
            verify=verification,
            shortened={name: getattr(settings, name) for name in SHORTENED},
            database=settings.database_url,
        )
        if web:
            app.show(view)
            say_dashboard(address)
            # The run replaced the handlers.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            with suppress(KeyboardInterrupt):
                Event().wait()
    return view


def _introduce(settings: Settings) -> Iterator[Part]:
    yield Text(translate("1. Product names become keywords, and these become search URLs"), style="bold")
    for name in PRODUCTS:
        yield f"   {name} -> {' & '.join(product_query(name).keywords)}"
    searched = translate(
        "Each is searched on the {n} sites of the catalog {catalog}, except those whose robots.txt refuses.",
        n=len(settings.catalog().sites),
        catalog=settings.sites,
    )
    yield f"   {searched}"
    yield Text("\n" + translate("2. The loop runs on a simulated web on this machine"), style="bold")
    nodes = translate(
        "{nodes} nodes with {slots} slots, each from an address of its own (127.0.0.2 and up), which every site treats "
        "in another way.",
        nodes=NODES,
        slots=settings.slots,
    )
    yield f"   {nodes}"
    shortened = translate(
        "Shortened for the demo: silence until recall {silent_after_s:g} s instead of 60, a request "
        "{request_timeout_s:g} s instead of 30, the first delay of a recall {backoff_s:g} s instead of 2, rests of "
        "hosts times {rest_factor:g}, attempts without an answer until a person is asked {most_unanswered} instead "
        "of 20.",
        **SHORTENED,
    )
    yield f"   {shortened}"
    dead = translate("315chn.com is dead: its subtasks wait for it, and then for a person.")
    yield f"   {dead}\n"


@text.register
def _(view: DemoView) -> Iterator[Part]:
    yield Text(translate("3. The result"), style="bold")
    if view.pairs:
        yield from pair_matrices(view.pairs, make_console().width)
    yield from list_count_parts(view)
    yield Text("\n" + translate("4. Reviews, for example"), style="bold")
    yield from list_sample_parts(view.samples)
    yield Text("\n" + translate("5. Did the loop keep its invariants?"), style="bold")
    for violation in view.verify.violations:
        yield Text(f"   {violation.kind}: {violation.message}", style="red")
    checked = format_counts(
        {name: view.verify.counts[name] for name in ("subtasks", "attempts", "events", "pages", "reviews")}
    )
    verdict = translate("reviewloop verify: no violation in {counts}", counts=checked)
    if view.verify.violations:
        verdict = translate("reviewloop verify: violations in {counts}", counts=checked)
    yield Text(f"   {verdict}", style="red" if view.verify.violations else "green")
    if not view.is_settled:
        why = translate("it was ended")
        if view.seconds >= LONGEST_S:
            why = translate("this machine is very busy")
        yield Text(translate("The demo ended before all was settled: {why}", why=why), style="yellow")
    yield Text("\n" + translate("What to try next"), style="bold")
    yield from (f"   {line}" for line in _list_commands(view))


def _list_commands(view: DemoView) -> Iterator[str]:
    hint, waiting = database_hint(), view.waits_for_a_person
    yield f"reviewloop export reviews --format csv -o reviews.csv{hint}"
    yield f"reviewloop web{hint}"
    yield f"reviewloop control pairs --site 12315.com --products{hint}"
    yield f"reviewloop explain {waiting[0].subtask_id if waiting else 1}{hint}"
    if waiting:
        yield f"reviewloop failed show {waiting[0].subtask_id}{hint}"
    yield "reviewloop lab --profile default"
    yield "reviewloop run --until-done --lab 127.0.0.1:8400 特仑苏"
