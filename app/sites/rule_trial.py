"""A page to try a site's rules on: fetched once from its URL, or given as bytes; for `sites try` and the dashboard."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from app.run.setting_fields import Settings
from app.sites.http_session import Answer
from app.sites.rendered_answer import ask_as_crawl, is_result_page
from app.sites.rule_preview import preview_rules
from app.sites.trial_view import TrialView
from app.views.fields import extend_row
from splitter.catalog.model import Catalog
from tasks.domain.pages import Hit, Review

_RECORDS_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A page and how it is to be read.

    Attributes:
        answer: the page with its address.
        is_fetched: the address was asked; otherwise it only stands for the unknown one.
        file: where the page was read from; `None` if it was fetched or pasted.
        result: by the rules of the engine's result pages; otherwise by those of the site's pages.
    """

    site: str
    answer: Answer
    is_fetched: bool
    file: str | None = None
    result: bool

    def read(self, catalog: Catalog, now: datetime, product: str | None = None) -> TrialView:
        """Return the result of the rules on the page. Raises ProductNameError."""
        answer = self.answer
        preview = preview_rules(
            catalog,
            self.site,
            answer.body,
            answer.headers,
            answer.url,
            result=self.result,
            now=now,
            status=answer.status,
            product=product,
        )
        records = preview.reading.records
        return extend_row(
            TrialView,
            replace(preview.reading, records=tuple(map(_list_fields, records[:_RECORDS_SHOWN]))),
            site=self.site,
            file=self.file,
            url=answer.url if self.is_fetched else None,
            status=answer.status if self.is_fetched else None,
            seconds=answer.elapsed_s if self.is_fetched else None,
            bytes=len(answer.body),
            count=len(records),
            rules=preview.rules,
            main_text=preview.main_text,
            outline=preview.outline,
            judgement=preview.judgement,
        )


def _list_fields(record: Hit | Review) -> dict[str, Any]:
    return record._asdict() if isinstance(record, Review) else asdict(record)


def fetched(settings: Settings, catalog: Catalog, site: str, url: str, read_as: str | None) -> Trial:
    """The page at a URL, asked for once, past robots.txt and limits; its guard holds.

    Args:
        read_as: "page" or "result"; None: as the URL says.

    Raises:
        AskFailed: there is none.
        InputError: it is made by script, and this machine has no browser.
    """
    asked_result = read_as == "result" or is_result_page(catalog, site, url)
    answer = ask_as_crawl(url, settings, catalog, site, result=asked_result)
    result = read_as == "result" or (read_as is None and is_result_page(catalog, site, answer.url))
    return Trial(site=site, answer=answer, is_fetched=True, result=result)


def given(catalog: Catalog, site: str, body: bytes, read_as: str | None, file: str | None = None) -> Trial:
    """A page that is at hand.

    Args:
        file: where it was read from; `None` if it was pasted.
    """
    result = read_as == "result"
    # Its address is not known. A page at the root would be read as a home page.
    url = catalog.engine_of(site).url if result else f"http://{site}/page.html"
    answer = Answer(url=url, status=200, headers={}, body=body, redirects=(), elapsed_s=0.0)
    return Trial(site=site, answer=answer, is_fetched=False, file=file, result=result)
