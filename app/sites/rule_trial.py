"""Test a site's rules on a page, which is fetched or given as bytes. For `sites try` and the dashboard."""

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
    """A page on which rules are tested, and the kind of rules to apply.

    Attributes:
        answer: the page with its URL.
        is_fetched: True if the URL was requested; otherwise the URL is a placeholder.
        file: file that the page was read from; `None` if it was fetched or pasted.
        result: True for the engine's rules for result pages, False for the site's rules for pages.
    """

    site: str
    answer: Answer
    is_fetched: bool
    file: str | None = None
    result: bool

    def read(self, catalog: Catalog, now: datetime, product: str | None = None) -> TrialView:
        """Apply the rules to the page, and return the result.

        Raises ProductNameError if `product` contains no keyword.
        """
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


def fetch_trial(settings: Settings, catalog: Catalog, site: str, url: str, read_as: str | None) -> Trial:
    """Fetch a page once, to test rules on it. Private addresses are refused, but robots.txt and limits are not checked.

    Args:
        read_as: "page" or "result"; `None` decides by the URL.

    Raises:
        AskFailed: there is no response.
        InputError: the page needs a browser, and this machine has none.
    """
    asked_result = read_as == "result" or is_result_page(catalog, site, url)
    answer = ask_as_crawl(url, settings, catalog, site, result=asked_result)
    result = read_as == "result" or (read_as is None and is_result_page(catalog, site, answer.url))
    return Trial(site=site, answer=answer, is_fetched=True, result=result)


def make_trial(
    catalog: Catalog, site: str, body: bytes, read_as: str | None, file: str | None = None
) -> Trial:
    """Prepare a test of rules on a page that was read from a file or pasted.

    Args:
        read_as: "page" or "result"; `None` means "page".
        file: name of the file; `None` if the page was pasted.
    """
    result = read_as == "result"
    # The real URL is unknown. A URL without a path would be judged as a home page.
    url = catalog.engine_of(site).url if result else f"http://{site}/page.html"
    answer = Answer(url=url, status=200, headers={}, body=body, redirects=(), elapsed_s=0.0)
    return Trial(site=site, answer=answer, is_fetched=False, file=file, result=result)
