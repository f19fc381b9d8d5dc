"""Alerts, alarms and new phrases of drawn products, whose reviews are imported as the file of a person is.

- **story**: ten milk products over 104 weeks. A file a day is imported, with the reviews that were seen that day, and the
  sweeps `rises` and `alerts` run. In month 20 a product is contaminated, and the crawl of another one begins to find
  twice as many reviews.
- **doubled**: 200 products that nothing happens to, and the same ones after their crawl found twice as many reviews
  from month 20 on. Each is judged alone.
- **phrases**: new phrases of complaints, period by period, without a change; then problems that no theme covers are
  added, 40 complaints each. The complaints without a change are those of the shared data, in a random order.

The parts of the drawn texts are in `research/samples/themes/story.yaml`.
"""

from __future__ import annotations

import csv
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache
from io import BytesIO, TextIOWrapper
from pathlib import Path
from random import Random
from threading import Event
from typing import Any, NamedTuple

import click
import numpy as np
import yaml
from sqlalchemy import Connection

from app.importing.columns import ColumnChoice
from app.importing.review_checks import ProductNames, ReviewChecks
from app.importing.review_columns import field_columns
from app.importing.review_files import open_review_file
from app.importing.review_import import Saving, import_reviews
from app.insight.counts import Selection
from app.insight.findings import list_findings
from app.insight.product import read_product
from app.insight.rows import ThemeState
from app.insight.states import CutoffSearch, judge_weeks
from app.insight.weekly import Groups, load_weekly
from app.reports.phrases import list_new_phrases
from app.run.setting_fields import Settings
from app.run.sweep_wiring import control
from app.run.version import MIGRATIONS
from app.views.words import switch_language
from research.tools.pagetruth import SAMPLES
from research.training.themes.theme_texts import list_open_complaints
from splitter.catalog.load import builtin
from splitter.catalog.model import Catalog
from splitter.errors import InputError
from splitter.spans import CHINA
from tasks.store.content import products
from tasks.store.queries.themes import Period
from tasks.store.queue.notices import list_open_alerts
from tasks.store.sql import schema
from tasks.store.sql.database import Store
from tasks.store.sql.transaction import Transaction
from tasks.store.sql.writer import Writer

_CATALOG = "today"
_WEEKS, _CHANGED_WEEKS = 104, 22
"""Weeks of the story, and those from the beginning of month 20 on."""
_THEME, _CONTAMINATED = "foreign_matter", 2
"""Theme of the contamination, and the mean number of its additional complaints a week."""
_DISPERSION = 1.5
"""Variance of the weekly number of reviews, divided by its mean."""
_DELAY_DAYS = 2.0
"""Mean of the days until a review is seen."""
_PRODUCTS = {
    "特仑苏纯牛奶250ml": 30, "伊利金典纯牛奶": 40, "光明优倍鲜牛奶": 20, "三元极致鲜牛奶": 12, "新希望24小时鲜牛奶": 10,
    "君乐宝简醇酸奶": 25, "安慕希希腊酸奶": 35, "旺仔牛奶": 15, "德亚全脂牛奶": 8, "现代牧场纯牛奶": 12,
}  # fmt: skip
"""Products of the story with their reviews a week: the first is contaminated, the second is crawled twice as much."""
_RUNS, _RUN_REVIEWS = 200, 8
_SITES = {
    "jd.com": (0.3, 0.12), "tmall.com": (0.25, 0.12), "suning.com": (0.1, 0.15), "weibo.com": (0.1, 0.5),
    "tieba.baidu.com": (0.1, 0.4), "tousu.sina.com.cn": (0.1, 1.0), "12315.com": (0.05, 1.0),
}  # fmt: skip
"""Share of each site's reviews, and of complaints among them."""
_THEMES = {
    "packaging_damage": 0.2, "delivery": 0.16, "spoiled": 0.14, "smell_taste": 0.16, "service": 0.15, "misleading": 0.05,
    "price": 0.05, "safety": 0.03, "wrong_missing": 0.03, "counterfeit_used": 0.01, "size_quantity": 0.01,
    "foreign_matter": 0.01,
}  # fmt: skip
_PERIODS, _PERIOD_DAYS, _COMPLAINTS = 12, 90, 90
_PHRASE_PRODUCTS, _UNCOVERED_PRODUCTS, _ADDED = 20, 10, 40
_RISING = list(ThemeState).index(ThemeState.RISING)
_GOALS = {
    "story.weeks_until_alert": "4, for a theme that triples",
    "story.alerts_of_other_products": "1.5 for 10 product-years",
    "crawl.doubled_products_alarmed": "as many as crawl.same_products_alarmed",
}
"""What should be reached, by ratio."""
_COLUMNS = ("商品名称", "平台", "评论时间", "昵称", "评论内容")


class _Review(NamedTuple):
    """A line of a file to import."""

    product: str
    site: str
    day: date
    author: str
    text: str


@click.option(
    "--keep", type=click.Path(dir_okay=False, path_type=Path), help="Keep the story's database here."
)
def run(shared: Path, smallest: bool, keep: Path | None = None) -> dict[str, Any]:
    """Draw products, import their reviews, and compare alerts and phrases with what was drawn.

    Args:
        keep: new SQLite file for the story, to look at with `reviewloop web`.

    Raises:
        InputError: the file is there already.
    """
    if keep is not None and keep.exists():
        raise InputError("{file} is there already: name a new file", file=keep)
    ratios: dict[str, float | None] = {}
    figures: dict[str, Any] = {f"goal.{name}": goal for name, goal in _GOALS.items()}
    for part in (_tell_story, _double_crawls, _find_phrases):
        with tempfile.TemporaryDirectory(prefix="reviewloop-story-") as folder:
            file = keep if keep is not None and part is _tell_story else Path(folder) / "story.db"
            with _open(file) as store:
                more, about = part(store, shared, smallest)
        ratios |= more
        figures |= about
    return {"bench": "story", "ratios": ratios, "figures": figures}


_Found = tuple[dict[str, float | None], dict[str, Any]]


class _DatedStore(Store):
    """A store whose transactions count from `now`, which the story moves."""

    now = datetime.now(UTC)

    @contextmanager
    def begin(
        self, connection: Connection | None = None, *, now: datetime | None = None
    ) -> Iterator[Transaction]:
        """Begin a transaction as `Store` does."""
        with super().begin(connection, now=now or self.now) as tx:
            yield tx

    @contextmanager
    def read(self, *, now: datetime | None = None) -> Iterator[Transaction]:
        """Begin a transaction as `Store` does."""
        with super().read(now=now or self.now) as tx:
            yield tx


@contextmanager
def _open(file: Path) -> Iterator[_DatedStore]:
    with closing(_DatedStore.open(f"sqlite:///{file}")) as store:
        assert isinstance(store, _DatedStore)
        schema.upgrade(store, MIGRATIONS)
        yield store


def _import(store: _DatedStore, reviews: Sequence[_Review]) -> None:
    """Import reviews as `reviewloop review import` does, in a file of theirs."""
    data = BytesIO()
    text = TextIOWrapper(data, "utf-8", newline="", write_through=True)
    csv.writer(text).writerows((_COLUMNS, *reviews))
    read = open_review_file(data, "story.csv")
    with store.read() as tx:
        names = ProductNames(products.list_names(tx), None, ())
    columns = field_columns(read.columns, ColumnChoice(), "story.csv")
    checks = ReviewChecks(columns, names, _catalog().sites, None, store.now)
    saving = Saving(store, "story", names, "story.csv", "bench")
    done = import_reviews(read.records, checks, saving.save, lambda _lines: None)
    saving.end()
    text.detach()
    assert done.added, "no review was stored"


@dataclass(frozen=True, slots=True)
class _Drawing:
    """Draws reviews."""

    rng: np.random.Generator
    chance: Random
    parts: Mapping[str, Any]

    @staticmethod
    def begin(seed: int) -> _Drawing:
        parts = yaml.safe_load((SAMPLES / "themes/story.yaml").read_text("utf-8"))
        return _Drawing(np.random.default_rng(seed), Random(seed), parts)

    def draw_weeks(self, name: str, mondays: Sequence[date], mean: float) -> Iterator[_Review]:
        """Yield reviews of a product, `mean` a week."""
        for monday, n in zip(mondays, self._draw_counts(mean, len(mondays)), strict=True):
            for _ in range(n):
                yield self._draw_review(name, monday + timedelta(days=self.chance.randrange(7)))

    def draw_complaint(
        self, name: str, first: date, clauses: Sequence[str] = (), days: int = _PERIOD_DAYS
    ) -> _Review:
        """Return a complaint of one of some days, with one of the clauses or about any theme."""
        day = first + timedelta(days=self.chance.randrange(days))
        return self.write(name, self.draw_site(), day, clauses or self._draw_theme())

    def write(
        self, name: str, site: str, day: date, clauses: Sequence[str], ends: str = "complaints"
    ) -> _Review:
        """Return a review with one of the clauses."""
        choose = self.chance.choice
        opening = choose(self.parts["openings"])
        opening = opening.format(day=f"{day.month}月{day.day}日", place=choose(self.parts["places"]))
        author = f"u{self.chance.randrange(10**9)}"
        return _Review(
            name, site, day, author, f"{opening}{choose(clauses)}，{choose(self.parts['endings'][ends])}"
        )

    def draw_site(self) -> str:
        """Return the site of a complaint."""
        weights = [share * complaints for share, complaints in _SITES.values()]
        return self.chance.choices(list(_SITES), weights)[0]

    def _draw_theme(self) -> Sequence[str]:
        """Return the clauses of a theme."""
        (theme,) = self.chance.choices(list(_THEMES), list(_THEMES.values()))
        clauses: Sequence[str] = self.parts["complaints"][theme]
        return clauses

    def _draw_counts(self, mean: float, weeks: int) -> Sequence[int]:
        spread = _DISPERSION - 1
        counts: Sequence[int] = self.rng.poisson(self.rng.gamma(mean / spread, spread, weeks)).tolist()
        return counts

    def _draw_review(self, name: str, day: date) -> _Review:
        (site,) = self.chance.choices(list(_SITES), [share for share, _ in _SITES.values()])
        if self.chance.random() < _SITES[site][1]:
            return self.write(name, site, day, self._draw_theme())
        return self.write(name, site, day, self.parts["praise"], "praise")


def _list_mondays(weeks: int) -> list[date]:
    """Return the first days of the last whole weeks."""
    today = datetime.now(CHINA).date()
    monday = today - timedelta(days=today.weekday())
    return [monday - timedelta(weeks=weeks - week) for week in range(weeks)]


def _tell_story(store: _DatedStore, _shared: Path, smallest: bool) -> _Found:
    """Follow the products day by day."""
    mondays, changed = (_list_mondays(30), 2) if smallest else (_list_mondays(_WEEKS), _CHANGED_WEEKS)
    begins = mondays[-changed]
    contaminated, doubled = list(_PRODUCTS)[:2]
    subject = f"{contaminated}: {_THEME}"
    drawing = _Drawing.begin(48)
    reviews: list[_Review] = []
    for name, mean in list(_PRODUCTS.items())[: 2 if smallest else None]:
        reviews += drawing.draw_weeks(name, mondays, mean)
    reviews += drawing.draw_weeks(doubled, mondays[-changed:], _PRODUCTS[doubled])
    clauses = drawing.parts["complaints"][_THEME]
    for _ in range(changed * _CONTAMINATED):
        reviews.append(drawing.draw_complaint(contaminated, begins, clauses, 7 * changed))
    seen: dict[date, list[_Review]] = defaultdict(list)
    for one in reviews:
        seen[one.day + timedelta(days=int(drawing.chance.expovariate(1 / _DELAY_DAYS)))].append(one)
    alerts: dict[str, tuple[date, str]] = {}
    sentences: Mapping[str, str] = {}
    with closing(Writer(store)) as writer:
        sweeps = control(Settings(sites=_CATALOG), _catalog(), store, writer, Event(), write=writer.call)
        for number in range(7 * len(mondays) + 1):
            day = mondays[0] + timedelta(days=number)
            store.now = datetime(day.year, day.month, day.day, 20, tzinfo=CHINA).astimezone(UTC)
            if seen[day]:
                _import(store, seen[day])
            sweeps.rises()
            sweeps.alerts()
            with store.read() as tx:
                new = [
                    one for one in list_open_alerts(tx) if one.rule == "rising" and one.subject not in alerts
                ]
                alerts |= {one.subject: (day, str(one.because.parameters["since"])) for one in new}
                if subject in {one.subject for one in new}:
                    sentences = _list_sentences(tx, contaminated, day)
    dates = {name: f"{day}, since {since}" for name, (day, since) in alerts.items()}
    ratios: dict[str, float | None] = {"story.weeks_until_alert": None, "story.weeks_until_dated_begin": None}
    if subject in alerts:
        day, since = alerts[subject]
        ratios["story.weeks_until_alert"] = round((day - begins).days / 7, 1)
        ratios["story.weeks_until_dated_begin"] = round((date.fromisoformat(since) - begins).days / 7, 1)
    ratios["story.alerts_of_other_products"] = sum(
        not name.startswith(f"{contaminated}: ") for name in alerts
    )
    figures = {"reviews": len(reviews), "contaminated_from": begins.isoformat(), "alerts": dates, **sentences}
    return ratios, {f"story.{name}": value for name, value in figures.items()}


def _list_sentences(tx: Transaction, name: str, today: date) -> Mapping[str, str]:
    """Return what the page of a product says of its last 90 days, by language."""
    number = products.find(tx, name).id
    choice = Selection(Period(today - timedelta(days=89), today))
    view = read_product(tx, (number, name), choice, today, _groups())
    sentences = {}
    for language in ("zh", "en"):
        with switch_language(language):
            sentences[f"page_{language}"] = " ".join(map(str, list_findings(view)))
    return sentences


def _double_crawls(store: _DatedStore, _shared: Path, smallest: bool) -> _Found:
    """Count alarms of products before and after their crawl doubled."""
    mondays = _list_mondays(_WEEKS)
    names = [f"试验牛奶{number:03}号" for number in range(1, 3 if smallest else _RUNS + 1)]
    drawing = _Drawing.begin(19)
    ratios: dict[str, float | None] = {}
    for part, weeks in (("same", _WEEKS), ("doubled", _CHANGED_WEEKS)):
        drawn = [one for name in names for one in drawing.draw_weeks(name, mondays[-weeks:], _RUN_REVIEWS)]
        _import(store, drawn)
        ratios[f"crawl.{part}_products_alarmed"] = _count_alarmed(store, names)
    return ratios, {"crawl.products": len(names), "crawl.reviews_a_week": _RUN_REVIEWS}


def _count_alarmed(store: _DatedStore, names: Sequence[str]) -> int:
    """Return how many products, each judged alone, have a theme that begins to rise in the last weeks."""
    alarmed = 0
    with store.read() as tx:
        for name in names:
            weekly = load_weekly(tx, [products.find(tx, name).id], datetime.now(CHINA).date(), _groups())
            search = CutoffSearch()
            search.add(weekly.series)
            is_rising = (
                judge_weeks(weekly.series, search.list_cutoffs()).states[:, -_CHANGED_WEEKS - 1 :] == _RISING
            )
            alarmed += bool((is_rising[:, 1:] & ~is_rising[:, :-1]).any())
    return alarmed


def _find_phrases(store: _DatedStore, shared: Path, smallest: bool) -> _Found:
    """Count false phrases of periods without a change, and the added problems that are found."""
    number, of_period = (2, 20) if smallest else (_PHRASE_PRODUCTS, _COMPLAINTS)
    names = [f"试验牛奶{number:03}号" for number in range(1, number + 1)]
    drawing = _Drawing.begin(7)
    first = _list_mondays(1)[0] - timedelta(days=_PERIODS * _PERIOD_DAYS)
    periods = [first + timedelta(days=_PERIOD_DAYS * number) for number in range(_PERIODS)]
    texts = list_open_complaints(shared) if (shared / "reviews").is_dir() else []
    for name in names:
        days = [day for day in periods for _ in range(of_period)]
        drawn = [drawing.draw_complaint(name, day) for day in days]
        chosen = drawing.chance.sample(texts, len(days)) if texts else [one.text for one in drawn]
        _import(store, [one._replace(text=text) for one, text in zip(drawn, chosen, strict=True)])
    checked = [(name, day) for name in names for day in periods[1:]]
    false = [phrase for name, day in checked for phrase in _list_phrases(store, name, day)]
    found: dict[str, int] = {}
    uncovered = drawing.parts["uncovered"]
    for day, (problem, clauses) in zip(periods[-len(uncovered) :], uncovered.items(), strict=True):
        found[problem] = 0
        for name in names[:_UNCOVERED_PRODUCTS]:
            drawn = [drawing.draw_complaint(name, day) for _ in range(_ADDED)]
            chosen = drawing.chance.sample(texts, _ADDED) if texts else [one.text for one in drawn]
            added = [f"{text}，{drawing.chance.choice(clauses)}" for text in chosen]
            _import(store, [one._replace(text=text) for one, text in zip(drawn, added, strict=True)])
            found[problem] += any(phrase in "，".join(clauses) for phrase in _list_phrases(store, name, day))
    tried = len(found) * len(names[:_UNCOVERED_PRODUCTS])
    ratios = {"phrases.false_of_periods": len(false), "phrases.found_share": sum(found.values()) / tried}
    figures = {"periods": len(checked), "false": false, "found": found, "real_texts": bool(texts)}
    return dict(ratios), {f"phrases.{name}": value for name, value in figures.items()}


def _list_phrases(store: _DatedStore, name: str, first: date) -> list[str]:
    with store.read() as tx:
        found = list_new_phrases(tx, [name], Period(first, first + timedelta(days=_PERIOD_DAYS - 1)))
    return [one.phrase for one in found.phrases]


@cache
def _catalog() -> Catalog:
    return builtin(_CATALOG)


def _groups() -> Groups:
    return {name: site.group for name, site in _catalog().sites.items()}
