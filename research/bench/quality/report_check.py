"""Count the figures of a report again, from the reviews alone: without the tables, queries and formulas of the product.

Only SQLite is read. The rules are those of docs/insight.md, written a second time.
"""

from __future__ import annotations

import html
import json
import math
import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

_MONDAY = date(1969, 12, 29)
_WEEKS = 260
_PRAISING = {"shop", "microblog", "forum"}
_SERIOUS = ("safety", "foreign_matter")
_THEMES = Path(__file__).parents[3] / "tasks" / "reading" / "judge" / "themes.yaml"
_CLAIM = re.compile(r'<span class="claim" data-claim="(.*?)"><a href="(.*?)">(.*?)</a></span>', re.DOTALL)
_FIGURES = re.compile(
    r'<tr class="figures"><th[^>]*>.*?</th><td class="number">(.*?)</td><td class="number">(.*?)</td>'
    r'.*?<tr class="quotes"><td[^>]*><span class="claim" data-claim="(.*?)">',
    re.DOTALL,
)
_ROW = re.compile(r"<li>(\d+) · (.*?) <span", re.DOTALL)
_BLOCK = re.compile(r'<h4 id="rows-(\d+)-(\w+)">.*?</h4>(.*?)</ul>', re.DOTALL)
_PART = re.compile(r'<section class="product" id="product-\d+">.*?</section>', re.DOTALL)
_CELL = re.compile(r"<g><title>([^<>·]+) · ([^<>·]+?)(?:: |：)([\d,]+)</title><rect")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?%?")


@dataclass(frozen=True, slots=True)
class Row:
    """A review of a product; of equal texts only the first one."""

    review: int
    product: int
    site: str
    day: date | None
    seen: date
    voice: str
    themes: tuple[str, ...]
    is_unread: bool
    page: int
    text: str
    is_left_out: bool


@dataclass(slots=True)
class Judged:
    """A theme of a product: its state at the end of each week, the last week last.

    Attributes:
        count, expected: complaints of the last 4 complete weeks, and those that were expected.
        usual: number of the last complete weeks, without a break, whose last 4 have a usual number of complaints.
        incomplete: number of newest weeks that were not judged.
    """

    states: list[str]
    count: int
    expected: float
    usual: int
    incomplete: int

    @property
    def weeks(self) -> int:
        """Return for how many weeks it has had its last state."""
        return next((n for n, state in enumerate(reversed(self.states)) if state != self.states[-1]), _WEEKS)

    @property
    def usual_weeks(self) -> int:
        """Return `usual`, of the weeks in its last state."""
        return min(self.usual, self.weeks - self.incomplete)


@dataclass
class Reviews:
    """The reviews of a store, and what else a report rests on.

    Attributes:
        groups: kind of each site of the catalog.
        sites: of the catalog, in order, that are for products of any category.
        unfilled: reviews behind the first number, up to the second, are not counted yet; (0, 0) if all are.
    """

    rows: Sequence[Row]
    linked: Mapping[tuple[int, str], date]
    names: Mapping[int, str]
    tasks: Sequence[Mapping[str, Any]]
    states: Mapping[tuple[int, str], set[str]]
    archived: Sequence[tuple[int, str]]
    groups: Mapping[str, str | None]
    sites: Sequence[str]
    today: date
    unfilled: tuple[int, int]
    by_product: dict[int, list[Row]] = field(default_factory=lambda: defaultdict(list))
    left_out: list[Row] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Sort the rows by product, and those that do not count apart."""
        for row in self.rows:
            (self.left_out if row.is_left_out else self.by_product[row.product]).append(row)
        self.rows = [row for row in self.rows if not row.is_left_out]

    @property
    def last_week(self) -> int:
        """Return the number of the last whole week."""
        return _week(self.today) - 1

    def choose(self, product: int, since: date | None, until: date | None) -> list[Row]:
        """Return the reviews of a product in a period."""
        return _choose(self.by_product[product], since, until)

    def praising_sites(self, rows: Sequence[Row]) -> set[str]:
        """Return the sites that publish praise as well."""
        complaints = Counter(row.site for row in rows if row.voice == "complaint")
        praise = Counter(row.site for row in rows if row.voice == "praise")
        found = set()
        for site in {row.site for row in rows}:
            buyers = complaints[site] + praise[site]
            group = self.groups.get(site)
            if group in _PRAISING or (group is None and buyers >= 50 and praise[site] >= 0.2 * buyers):
                found.add(site)
        return found

    def incomplete_days(self, product: int) -> int | None:
        """Return how many of the newest days are incomplete; reviews that do not count have been seen as well."""
        seen, at_risk, oldest = [0.0] * 57, [0.0] * 57, 0
        rows = [*self.by_product[product], *(row for row in self.left_out if row.product == product)]
        for row in rows:
            if row.day is None or (self.today - row.day).days > 112:
                continue
            if row.day <= self.linked[product, row.site]:
                continue
            age, delay = (self.today - row.day).days, max((row.seen - row.day).days, 0)
            oldest = max(oldest, age)
            if delay <= min(age, 56):
                seen[delay] += 1
                for days in range(delay, min(age, 56) + 1):
                    at_risk[days] += 1
        if sum(seen) < 20 or oldest < 28:
            return None
        share, days = 1.0, 56
        while days > 0 and share * (1 - seen[days] / max(at_risk[days], 1)) >= 0.9:
            share *= 1 - seen[days] / max(at_risk[days], 1)
            days -= 1
        return days

    @cached_property
    def judged(self) -> Mapping[tuple[int, str], Judged]:
        """The states of all themes."""
        series = {key: made for product in self.by_product for key, made in self._list_series(product)}
        small: dict[int, list[float]] = defaultdict(list)
        watched: Counter[int] = Counter()
        for one in series.values():
            for week, p in enumerate(one.list_p()):
                if week <= one.last:
                    watched[week] += one.is_watched[week]
                    if p <= 0.05:
                        small[week].append(p)
        limits = [_limit(small[week], watched[week]) for week in range(_WEEKS)]
        return {key: one.judge(limits) for key, one in series.items()}

    def _list_series(self, product: int) -> Iterator[tuple[tuple[int, str], _Series]]:
        rows = self.by_product[product]
        first = self.last_week - _WEEKS + 1
        dated = [
            (row, _week(row.day) - first)
            for row in rows
            if row.day is not None and first <= _week(row.day) <= self.last_week
        ]
        total: dict[str, list[int]] = defaultdict(lambda: [0] * _WEEKS)
        counts: dict[str, list[int]] = defaultdict(lambda: [0] * _WEEKS)
        sites: dict[str, set[str]] = defaultdict(set)
        praising = self.praising_sites([row for row, _ in dated])
        for row, week in dated:
            total[row.site][week] += 1
            themes = list(row.themes)
            if row.voice == "complaint" and row.site in praising:
                themes.append("all")
            for theme in themes:
                counts[theme][week] += 1
                sites[theme].add(row.site)
        days = self.incomplete_days(product) or 0
        complete = _week(self.today - timedelta(days=days) + timedelta(days=1)) - 1
        last = _WEEKS - 1 - max(0, self.last_week - complete)
        recent = _MONDAY + timedelta(weeks=self.last_week - 7)
        for theme, found in counts.items():
            at = praising & set(total) if theme == "all" else sites[theme]
            others = [sum(total[site][week] for site in at) - found[week] for week in range(_WEEKS)]
            has = [any(total[site][week] for site in total) for week in range(_WEEKS)]
            new = [row for row in rows if theme in row.themes and row.day is not None and row.day >= recent]
            yield (product, theme), _Series(found, others, has, len({row.page for row in new}), last)


@dataclass
class _Series:
    """Weekly counts of a theme."""

    counts: Sequence[int]
    others: Sequence[int]
    has: Sequence[bool]
    pages: int
    last: int

    def __post_init__(self) -> None:
        """Compute what each week could expect."""
        first = next((week for week, has in enumerate(self.has) if has), _WEEKS)
        self.since_first = [max(0, week - first + 1) for week in range(_WEEKS)]
        self.is_watched = [
            self.since_first[week] >= 26 and sum(self.has[max(0, week - 51) : week + 1]) >= 26
            for week in range(_WEEKS)
        ]
        self.four = [sum(self.counts[max(0, week - 3) : week + 1]) for week in range(_WEEKS)]
        exposure = [self.others[week] + 0.5 if self.since_first[week] else 0.0 for week in range(_WEEKS)]
        self.mean, self.dispersion, self.weekly = [], [], []
        for week in range(_WEEKS):
            window = range(max(week - 155, 0), max(week - 7, 0))
            complaints = sum(self.counts[at] for at in window)
            exposed = sum(exposure[at] for at in window)
            squares = sum(self.counts[at] ** 2 / exposure[at] for at in window if exposure[at])
            weeks = sum(1 for at in window if self.since_first[at])
            rate = (complaints + 0.5) / max(exposed, 1.0)
            chi_square = squares / rate - 2 * complaints + rate * exposed
            dispersion = (chi_square + 30 * 1.15) / (max(weeks - 1, 0) + 30)
            self.mean.append(max(rate * exposure[week], 1e-9))
            self.dispersion.append(max(dispersion, 1.01))
            self.weekly.append(complaints / max(weeks, 1))

    def _add(self, sums: Sequence[float], week: int) -> tuple[float, float]:
        if not self.is_watched[week]:
            return -math.inf, -math.inf
        size = self.mean[week] / (self.dispersion[week] - 1)
        count = self.counts[week]
        added = []
        for factor, before in zip((2.0, 4.0), sums, strict=True):
            shrunk = math.log((size + self.mean[week]) / (size + factor * self.mean[week]))
            ratio = count * math.log(factor) + (count + size) * shrunk
            added.append(_log_add(0.0, before) + ratio)
        return added[0], added[1]

    def _p(self, sums: Sequence[float], week: int) -> float:
        if not self.is_watched[week] or self.four[week] < 3:
            return 1.0
        evidence = _log_add(sums[0] + math.log(0.8), sums[1] + math.log(0.2))
        nu = self.dispersion[week] / ((2 * math.log(2) - 1) * self.mean[week])
        return min(1.0, min(nu, 12.0) * math.exp(-max(evidence, 0.0)))

    def list_p(self) -> Iterator[float]:
        """Yield the p value of each week."""
        sums: Sequence[float] = (-math.inf, -math.inf)
        for week in range(_WEEKS):
            sums = self._add(sums, week)
            yield self._p(sums, week)

    def judge(self, limits: Sequence[float]) -> Judged:
        """Return the states, given the p value up to which themes rise in each week."""
        sums: Sequence[float] = (-math.inf, -math.inf)
        is_rising = was_quiet = False
        usual = back = seen = weeks_seen = 0
        silent = math.inf
        states: list[str] = []
        for week in range(self.last + 1):
            sums = self._add(sums, week)
            usual = usual + 1 if self.four[week] <= 5 * self.weekly[week] + 1 else 0
            ends = is_rising and usual >= 4
            rises = is_rising or self._p(sums, week) <= limits[week]
            is_rising = rises and not ends and self.is_watched[week]
            if ends:
                sums = (-math.inf, -math.inf)
            silent = 0 if self.counts[week] else silent + 1
            quiet_after = 4.6 * self.dispersion[week] / max(self.weekly[week], 1e-9)
            is_quiet = min(max(quiet_after, 8), 156) <= silent < math.inf
            returns = was_quiet and self.four[week] >= 2
            back = 8 if returns else max(back - 1, 0)
            was_quiet = (was_quiet or is_quiet) and not returns
            seen += self.counts[week]
            weeks_seen += seen > 0
            is_new = 0 < weeks_seen <= 8 and self.since_first[week] - weeks_seen >= 26
            is_new = is_new and seen >= 3 and self.pages >= 2
            told = ((is_rising, "rising"), (is_new, "new"), (back > 0, "back"), (was_quiet, "quiet"))
            state = next((name for holds, name in told if holds), "ongoing")
            states.append(state if self.is_watched[week] else "watching")
        lately = range(self.last - 3, self.last + 1)
        expected = round(sum(self.mean[week] for week in lately), 2)
        incomplete = _WEEKS - len(states)
        return Judged(states + states[-1:] * incomplete, self.four[self.last], expected, usual, incomplete)


def _choose(rows: list[Row], since: date | None, until: date | None) -> list[Row]:
    if since is None and until is None:
        return rows
    first, last = since or date.min, until or date.max
    return [row for row in rows if row.day is not None and first <= row.day <= last]


def _week(day: date) -> int:
    return (day - _MONDAY).days // 7


def _log_add(one: float, other: float) -> float:
    high, low = max(one, other), min(one, other)
    return high if low == -math.inf else high + math.log1p(math.exp(low - high))


def _limit(small: Sequence[float], watched: int) -> float:
    limit = 0.0
    for place, p in enumerate(sorted(small), 1):
        allowed = 0.05 * place / max(watched, 300)
        if p <= allowed:
            limit = allowed
    return limit


def load_reviews(file: Path, today: date, groups: Mapping[str, str | None], sites: Sequence[str]) -> Reviews:
    """Load what a report rests on from a SQLite file."""
    with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as db:
        found: dict[tuple[int, int, bool], Row] = {}
        excluded: dict[int, list[str]] = defaultdict(list)
        for product, word in db.execute("SELECT product_id, word FROM excluded_words"):
            excluded[product].append(word.lower())
        for (
            review,
            product,
            site,
            day,
            at,
            voice,
            themes,
            same_as,
            page,
            title,
            text,
            hidden,
            other,
        ) in db.execute(_ROWS):
            has_word = any(word in f"{title} {text}".lower() for word in excluded[product])
            marks = json.loads(themes or "null") or []
            is_buyers = voice in ("complaint", "praise")
            named = tuple(mark[0] for mark in marks if mark[1] == -1) if is_buyers else ()
            row = Row(
                review=review,
                product=product,
                site=site,
                day=date.fromisoformat(day) if day else None,
                seen=_clock_day(at),
                voice=voice or "",
                themes=named,
                is_unread=themes == "[]",
                page=page,
                text=text,
                is_left_out=bool(hidden) or other is not None or has_word,
            )
            found.setdefault((product, same_as or review, row.is_left_out), row)
        linked = {(product, site): _clock_day(at) for product, site, at in db.execute(_LINKED)}
        tasks = [
            {"product": product, "site": site, "found": n, "stored": stored}
            for product, site, n, stored in db.execute(_TASKS)
        ]
        states: dict[tuple[int, str], set[str]] = defaultdict(set)
        for product, site, state in db.execute(_STATES):
            states[product, site].add(state)
        names = dict(db.execute("SELECT id, name FROM products"))
        archived = db.execute("SELECT product_id, theme FROM archived_themes").fetchall()
        filling = db.execute("SELECT data FROM stored_values WHERE name = 'counted_reviews'").fetchone()
    mark = json.loads(filling[0]) if filling else {"after": 0, "upto": 0}
    rows = [row for row in found.values() if not mark["after"] < row.review <= mark["upto"]]
    unfilled = mark["after"], mark["upto"]
    return Reviews(rows, linked, names, tasks, states, archived, groups, sites, today, unfilled)


def _clock_day(at: str) -> date:
    """Return the day of a stored time by the clock of Asia/Shanghai."""
    return (datetime.fromisoformat(at) + timedelta(hours=8)).date()


_ROWS = """
    SELECT r.id, l.product_id, r.site, r.day, r.collected_at, coalesce(c.voice, r.voice), coalesce(c.themes, r.themes),
        r.same_as, r.page_id, r.title, r.body, c.hidden, n.product_id
    FROM reviews r JOIN page_products l ON l.page_id = r.page_id LEFT JOIN corrections c ON c.id = r.correction_id
    LEFT JOIN correction_products n ON n.correction_id = c.id AND n.product_id = l.product_id
    WHERE l.verdict = 'review' AND r.refused IS NULL ORDER BY r.id
"""
_LINKED = """
    SELECT l.product_id, g.site, min(l.linked_at) FROM page_products l JOIN pages g ON g.id = l.page_id
    GROUP BY l.product_id, g.site
"""
_TASKS = """
    SELECT t.product_id, t.site, t.found,
        (SELECT count(*) FROM targets h WHERE h.task_id = t.id AND h.kind = 'hit' AND h.state = 'stored')
    FROM tasks t
"""
_STATES = "SELECT t.product_id, t.site, s.state FROM tasks t JOIN subtasks s ON s.task_id = t.id"


# --- claims -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of a report with its figures."""

    values: Mapping[str, Any]
    link: str
    text: str
    language: str


def read_claims(page: str) -> list[Claim]:
    """Return the sentences of a report."""
    language = "zh" if 'lang="zh' in page[:200] else "en"
    return [
        Claim(json.loads(html.unescape(values)), html.unescape(link), html.unescape(text), language)
        for values, link, text in _CLAIM.findall(page)
    ]


def find_unclaimed(page: str) -> list[str]:
    """Return the sentences with a digit that carry no figures."""
    body = page[page.index('<section class="findings') : page.index('<section class="crawl"')]
    body = re.sub(r"<svg.*?</svg>|<blockquote>.*?</blockquote>", "", _CLAIM.sub("", body), flags=re.DOTALL)
    found = re.findall(r"<(?:p|li)\b[^>]*>(.*?)</(?:p|li)>", body, re.DOTALL)
    return [one for one in found if re.search(r"\d", re.sub(r"<[^>]*>", "", one))]


def count_rows(page: str) -> int:
    """Return the number of the rows of themes and of reviews in a report, and of the cells of its heat maps."""
    rows = sum(len(_ROW.findall(block)) for _, _, block in _BLOCK.findall(page))
    return rows + len(_FIGURES.findall(page)) + sum(len(_CELL.findall(part)) for part in _PART.findall(page))


Shown = tuple[Mapping[str, Any], Sequence[str]]
"""The values of a sentence, and the numbers that its text has."""


class Checker:
    """Counts the values of sentences again.

    Attributes:
        reviews: what they rest on.
    """

    def __init__(self, reviews: Reviews) -> None:
        self.reviews = reviews
        document = yaml.safe_load(_THEMES.read_text("utf-8"))
        self._names = _list_theme_names(document)
        self._counts: Mapping[str, Callable[[_Choice], Shown]] = {
            "complaints": _count_complaints,
            "compared": _compare,
            "none_rises": lambda choice: _none(choice, "rising"),
            "too_few_weeks": _watch,
            "all_rising": lambda choice: _describe_rise(choice, choice.reviews.judged[choice.product, "all"]),
            "serious": _count_serious,
            "most": _count_most,
            "share": _count_share,
            "days": _find_days,
            "silent": _find_silent,
            "archived": _count_archived,
            "left_out": _count_left_out_reviews,
            "counted": _find_filled,
            "judged_alone": lambda _: ({}, ["15"]),
            "undated": _count_undated,
            "unread": _count_unread,
            "incomplete": _count_incomplete,
            "not_compared": _find_not_compared,
            "without_share": _find_without_share,
            "chart_sites": _count_chart_sites,
            "chart_months": _count_chart_months,
            "not_searched": _find_not_searched,
            "coverage": _cover,
            "coverage_unknown": _cover_unknown,
            "not_asked": _find_not_asked,
            "unfinished": _find_unfinished,
            "products_left_out": _count_left_out,
        }

    def list_faults(self, page: str) -> Iterator[str]:
        """Yield what the reviews do not support: sentences, cells of themes, and rows of reviews."""
        for claim in read_claims(page):
            if fault := self.find_fault(claim):
                yield fault
        for complaints, share, values in _FIGURES.findall(page):
            choice = self._choose(json.loads(html.unescape(values)))
            right = _n(choice.themes[choice.theme]), _theme_share(choice)
            if right != (complaints, share):
                yield f"{choice.theme}: {complaints}, {share}, and the reviews give {right}"
        for product, theme, block in _BLOCK.findall(page):
            of_product = {row.review: row for row in self.reviews.by_product[int(product)]}
            for review, text in _ROW.findall(block):
                row = of_product.get(int(review))
                if row is None or theme not in row.themes or html.unescape(text) not in row.text:
                    yield f"{theme}: review {review} does not show it: {text}"
        for part in _PART.findall(page):
            yield from self._list_wrong_cells(part)
        yield from (f"no figures: {one}" for one in find_unclaimed(page))

    def _list_wrong_cells(self, part: str) -> Iterator[str]:
        """Yield the cells of the heat maps of a product that its reviews do not give, and those that are missing."""
        claims = read_claims(part)
        if not claims:
            return
        choice = self._choose({**claims[0].values, "theme": ""})
        rows = [(self._names["zh"][theme], row) for row in choice.rows for theme in row.themes]
        right = Counter((name, row.site) for name, row in rows)
        right += Counter((name, f"{row.day:%Y-%m}") for name, row in rows if row.day)
        in_chinese = {
            self._names[language][theme]: name
            for language in self._names
            for theme, name in self._names["zh"].items()
        }
        found = {
            (in_chinese[html.unescape(theme)], html.unescape(column)): int(n.replace(",", ""))
            for theme, column, n in _CELL.findall(part)
        }
        yield from (
            f"heat map: {key}: {n}, and the reviews give {right[key]}"
            for key, n in found.items()
            if right[key] != n
        )
        if not {"chart_sites", "chart_months"} & {claim.values["kind"] for claim in claims}:
            yield from (f"heat map: {key} is missing" for key in right.keys() - found.keys())

    def _choose(self, values: Mapping[str, Any]) -> _Choice:
        since, until = (date.fromisoformat(day) if (day := values[name]) else None for name in ("from", "to"))
        return _Choice(self.reviews, values["product"], since, until, values.get("theme", ""))

    def find_fault(self, claim: Claim) -> str:
        """Return what is wrong with a sentence; empty if the reviews support it."""
        choice, kind = self._choose(claim.values), claim.values["kind"]
        chosen = ("kind", "product", "from", "to", "theme")
        values = {name: value for name, value in claim.values.items() if name not in chosen}
        count = _OF_THEME[kind] if choice.theme else self._counts[kind]
        right, numbers = count(choice)
        if not _is_equal(values, right):
            return f"{kind}: {values}, and the reviews give {dict(right)}"
        return self._find_wrong_text(claim, kind, choice, right, numbers)

    def _find_wrong_text(
        self, claim: Claim, kind: str, choice: _Choice, right: Mapping[str, Any], numbers: Sequence[str]
    ) -> str:
        """Return what the text says that the values do not."""
        text = claim.text
        names = right.get("themes", {}) if isinstance(right.get("themes"), dict) else {}
        for theme in {*names, choice.theme} - {""}:
            name = self._names[claim.language][theme]
            if name not in text and kind != "theme":
                return f"{kind}: {name} is not in {text!r}"
            text = text.replace(name, "")
        for site in sorted(right.get("sites", ()) if isinstance(right.get("sites"), list) else (), key=len)[
            ::-1
        ]:
            text = text.replace(site, "")
        is_of_period = kind in ("complaints", "compared")  # it begins with the period in words
        days, right_days = Counter(_DAY.findall(text)), Counter(_list_days(right))
        of_period = Counter(str(day) for day in (choice.since, choice.until) if day and is_of_period)
        if not right_days <= days <= right_days + of_period:
            return f"{kind}: {sorted(days)} in {claim.text!r}, and the reviews give {sorted(right_days)}"
        found = Counter(one.rstrip(",") for one in _NUMBER.findall(_DAY.sub("", text)))
        further = Counter([str(choice.days)] if choice.days and is_of_period else [])
        if not Counter(numbers) <= found <= Counter(numbers) + further:
            return f"{kind}: {sorted(found)} in {claim.text!r}, and the reviews give {sorted(numbers)}"
        return _find_wrong_direction(claim, choice) if kind == "compared" else ""


def _list_theme_names(document: Mapping[str, Any]) -> Mapping[str, Mapping[str, str]]:
    found: dict[str, dict[str, str]] = {"zh": {}, "en": {}}
    for category in ("goods",):
        for theme, one in document[category].items():
            for language, names in found.items():
                names[theme] = one[language]
    return found


def _find_wrong_direction(claim: Claim, choice: _Choice) -> str:
    now, before, _, _ = _count_both(choice)
    words = {"en": ("more", "fewer"), "zh": ("多", "少")}[claim.language]
    right = () if now == before else (words[0] if now > before else words[1],)
    said = tuple(word for word in words if word in claim.text)
    return "" if said == right else f"compared: {claim.text!r}, and it went from {before} to {now}"


def _list_days(values: object) -> Iterator[str]:
    if isinstance(values, str):
        yield from _DAY.findall(values)
    elif isinstance(values, Mapping):
        for one in values.values():
            yield from _list_days(one)


def _is_equal(found: Any, right: Any) -> bool:
    if isinstance(found, Mapping) and isinstance(right, Mapping):
        return found.keys() == right.keys() and all(_is_equal(found[name], right[name]) for name in found)
    if isinstance(found, float) and isinstance(right, float):
        return math.isclose(found, right, rel_tol=1e-9)
    return bool(found == right)


@dataclass(frozen=True)
class _Choice:
    """The rows of a sentence."""

    reviews: Reviews
    product: int
    since: date | None
    until: date | None
    theme: str

    @cached_property
    def rows(self) -> list[Row]:
        """Reviews of the period."""
        return self.reviews.choose(self.product, self.since, self.until)

    @property
    def every(self) -> list[Row]:
        """Reviews of all days."""
        return self.reviews.by_product[self.product]

    @property
    def days(self) -> int | None:
        """Number of days of the period."""
        return (self.until - self.since).days + 1 if self.since and self.until else None

    @property
    def before(self) -> list[Row] | None:
        """Reviews of the period before."""
        if not (self.since and self.until):
            return None
        length = self.until - self.since
        end = self.since - timedelta(days=1)
        return self.reviews.choose(self.product, end - length, end)

    @cached_property
    def themes(self) -> Counter[str]:
        """Complaints of the period by theme."""
        return Counter(theme for row in self.rows for theme in row.themes)

    @cached_property
    def archived(self) -> set[str]:
        """Themes that a person archived, which the store's reviews show no rise of since."""
        return {theme for product, theme in self.reviews.archived if product == self.product}

    @property
    def judged(self) -> Mapping[str, Judged]:
        """States by theme."""
        found = {
            theme: one for (product, theme), one in self.reviews.judged.items() if product == self.product
        }
        return {theme: one for theme, one in found.items() if theme != "all"}


def _is_complaint(row: Row) -> bool:
    return row.voice == "complaint"


def _n(number: int) -> str:
    return f"{number:,}"


def _count_complaints(choice: _Choice) -> Shown:
    n = sum(map(_is_complaint, choice.rows))
    return {"complaints": n}, [str(n)]


def _count_both(choice: _Choice) -> tuple[int, int, set[str], set[str]]:
    before = choice.before or []
    sites, earlier = {row.site for row in choice.rows}, {row.site for row in before}
    both = sites & earlier
    counts = [sum(_is_complaint(row) and row.site in both for row in rows) for rows in (choice.rows, before)]
    return counts[0], counts[1], both, sites ^ earlier


def _compare(choice: _Choice) -> Shown:
    now, before, both, left_out = _count_both(choice)
    n = sum(map(_is_complaint, choice.rows))
    change = abs(now / before - 1)
    values = {"complaints": n, "days": choice.days, "change": change}
    numbers = [str(n), str(choice.days)] + ([f"{change:.0%}"] if now != before else [])
    if left_out:
        numbers += [str(len(both)), str(len(left_out))]
    return {**values, "compared_sites": len(both), "sites_left_out": len(left_out)}, numbers


def _none(choice: _Choice, state: str) -> Shown:
    states = {one.states[-1] for theme, one in choice.judged.items() if theme not in choice.archived}
    return ({} if state not in states else {"state": state}), []


def _watch(choice: _Choice) -> Shown:
    dated = {theme for row in choice.every for theme in row.themes if row.day}
    watching = all(choice.judged[theme].states[-1] == "watching" for theme in dated if theme in choice.judged)
    return ({} if watching else {"watching": False}), []


def _count_serious(choice: _Choice) -> Shown:
    counts = {theme: choice.themes[theme] for theme in _SERIOUS if choice.themes[theme]}
    return {"themes": counts}, [_n(n) for n in counts.values()]


def _count_most(choice: _Choice) -> Shown:
    def order(theme: str) -> tuple[int, bool, str]:
        judged = choice.judged.get(theme)
        return -choice.themes[theme], judged is None or judged.states[-1] != "rising", theme

    counts = {theme: choice.themes[theme] for theme in sorted(choice.themes, key=order)[:3]}
    return {"themes": counts}, [_n(n) for n in counts.values()]


def _share(choice: _Choice, rows: Sequence[Row]) -> float | None:
    praising = choice.reviews.praising_sites(choice.every)
    buyers = [row for row in rows if row.site in praising and row.voice in ("complaint", "praise")]
    return sum(map(_is_complaint, buyers)) / len(buyers) if buyers else None


def _count_share(choice: _Choice) -> Shown:
    before = choice.before
    shares = [_share(choice, choice.rows), None if before is None else _share(choice, before)]
    values = {"share": shares[0], "share_before": shares[1]}
    return values, [f"{share:.1%}" for share in shares if share is not None]


def _find_days(choice: _Choice) -> Shown:
    days = [row.day for row in choice.every if row.day and _is_complaint(row)]
    return {"first": min(days).isoformat(), "last": max(days).isoformat()}, []


def _list_theme_days(choice: _Choice, theme: str) -> list[date]:
    return [row.day for row in choice.every if row.day and theme in row.themes]


def _find_silent(choice: _Choice) -> Shown:
    earlier = {theme for row in choice.every if row.day for theme in row.themes if not choice.themes[theme]}
    earlier -= choice.archived
    return {"themes": {theme: max(_list_theme_days(choice, theme)).isoformat() for theme in earlier}}, []


def _count_theme(choice: _Choice) -> Shown:
    n, days = choice.themes[choice.theme], _list_theme_days(choice, choice.theme)
    judged = choice.judged.get(choice.theme)
    values = {"complaints": n, "state": judged.states[-1] if judged else "watching"}
    if days:
        values |= {"first": min(days).isoformat(), "last": max(days).isoformat()}
    return values, [str(n)]


def _theme_share(choice: _Choice) -> str:
    praising = choice.reviews.praising_sites(choice.every)
    rows = [row for row in choice.rows if row.site in praising]
    buyers = sum(row.voice in ("complaint", "praise") for row in rows)
    return f"{sum(choice.theme in row.themes for row in rows) / buyers:.1%}" if buyers else "–"


def _describe_rise(choice: _Choice, judged: Judged) -> Shown:
    if judged.states[-1] != "rising":
        return {"state": judged.states[-1]}, []
    since = _MONDAY + timedelta(weeks=choice.reviews.last_week - judged.weeks + 1)
    values = {
        "since": since.isoformat(),
        "weeks": judged.weeks,
        "count": judged.count,
        "expected": judged.expected,
        "usual_weeks": judged.usual_weeks,
    }
    numbers = [str(judged.weeks), "4", _n(judged.count), f"{judged.expected:,.1f}"]
    return values, numbers + ([str(judged.usual_weeks), "4"] if judged.usual_weeks else [])


def _find_return(choice: _Choice) -> Shown:
    judged = choice.judged[choice.theme]
    if judged.states[-1] != "back":
        return {"state": judged.states[-1]}, []
    since = _MONDAY + timedelta(weeks=choice.reviews.last_week - judged.weeks + 1)
    return {"since": since.isoformat()}, []


def _find_new(choice: _Choice) -> Shown:
    judged = choice.judged[choice.theme]
    if judged.states[-1] != "new":
        return {"state": judged.states[-1]}, []
    return {"first": min(_list_theme_days(choice, choice.theme)).isoformat()}, []


_OF_THEME: Mapping[str, Callable[[_Choice], Shown]] = {
    "theme": _count_theme,
    "rising": lambda choice: _describe_rise(choice, choice.judged[choice.theme]),
    "back": _find_return,
    "new": _find_new,
}


def _count_archived(choice: _Choice) -> Shown:
    counts = {theme: n for theme in choice.archived if (n := choice.themes[theme])}
    return {"themes": counts}, [_n(n) for n in counts.values()]


def _count_left_out_reviews(choice: _Choice) -> Shown:
    rows = [row for row in choice.reviews.left_out if row.product == choice.product]
    n = len(_choose(rows, choice.since, choice.until))
    return {"reviews": n}, [str(n)]


def _find_filled(choice: _Choice) -> Shown:
    after, upto = choice.reviews.unfilled
    return {"share": after / upto}, [f"{after / upto:.0%}"]


def _count_undated(choice: _Choice) -> Shown:
    n = sum(row.day is None for row in choice.every)
    return {"reviews": n}, [str(n)]


def _count_unread(choice: _Choice) -> Shown:
    n = sum(row.is_unread for row in choice.rows)
    return {"reviews": n}, [str(n)]


def _count_incomplete(choice: _Choice) -> Shown:
    days = choice.reviews.incomplete_days(choice.product)
    return {"days": days}, [str(days)] if days and days > 1 else []


def _name(sites: Sequence[str]) -> Shown:
    further = [str(len(sites) - 12)] if len(sites) > 12 else []
    return {"sites": list(sites)}, [str(len(sites)), *further]


def _find_not_compared(choice: _Choice) -> Shown:
    return _name(sorted(_count_both(choice)[3]))


def _find_without_share(choice: _Choice) -> Shown:
    sites = {row.site for row in choice.rows if row.themes or _is_complaint(row)}
    return _name(sorted(sites - choice.reviews.praising_sites(choice.every)))


def _count_chart_sites(choice: _Choice) -> Shown:
    counts = Counter(row.site for row in choice.rows for _ in row.themes)
    left_out = sorted(counts, key=lambda site: (-counts[site], site))[12:]
    n = sum(counts[site] for site in left_out)
    return {"sites": len(left_out), "complaints": n}, [str(len(left_out)), _n(n)]


def _count_chart_months(choice: _Choice) -> Shown:
    days = [row.day for row in choice.rows if row.day for _ in row.themes]
    counts = Counter(12 * day.year + day.month for day in days)
    left_out = range(min(counts), max(counts) - 59)
    n = sum(counts[month] for month in left_out)
    return {"months": len(left_out), "complaints": n}, [str(len(left_out)), _n(n)]


def _tasks_of(choice: _Choice) -> list[Mapping[str, Any]]:
    return [one for one in choice.reviews.tasks if one["product"] == choice.product]


def _find_not_searched(choice: _Choice) -> Shown:
    return ({} if not _tasks_of(choice) else {"tasks": len(_tasks_of(choice))}), []


def _cover(choice: _Choice) -> Shown:
    known = [one for one in _tasks_of(choice) if one["found"] is not None]
    hits, stored = sum(one["found"] for one in known), sum(one["stored"] for one in known)
    return {"stored": stored, "hits": hits}, [_n(stored), _n(hits), f"{min(1.0, stored / hits):.0%}"]


def _cover_unknown(choice: _Choice) -> Shown:
    hits = sum(one["found"] or 0 for one in _tasks_of(choice))
    return ({} if not hits else {"hits": hits}), []


def _list_asked(choice: _Choice) -> set[str]:
    found = {
        site: states for (product, site), states in choice.reviews.states.items() if product == choice.product
    }
    return {site for site, states in found.items() if states - {"PRIORITY", "WAIT"}}


def _find_not_asked(choice: _Choice) -> Shown:
    asked = _list_asked(choice)
    return _name([site for site in choice.reviews.sites if site not in asked])


def _find_unfinished(choice: _Choice) -> Shown:
    of_site = {site: choice.reviews.states[choice.product, site] for site in _list_asked(choice)}
    return _name(sorted(site for site, states in of_site.items() if states - {"DONE", "CANCELLED"}))


def _count_left_out(choice: _Choice) -> Shown:
    counts = {
        product: sum(map(_is_complaint, choice.reviews.choose(product, choice.since, choice.until)))
        for product in choice.reviews.names
    }
    order = sorted(counts, key=lambda product: (-counts[product], choice.reviews.names[product]))[10:]
    n = sum(counts[product] for product in order)
    return {"products": len(order), "complaints": n}, [_n(len(order)), _n(n)]
