"""A page to try a site's rules on: fetched once from its URL, or given as bytes; for `sites try` and the dashboard."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.run.setting_fields import Settings
from app.sites.rendered_answer import ask_as_crawl, is_result_page
from app.sites.rule_preview import RulePreview, preview_rules
from splitter.catalog.model import Catalog


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A page and how it is to be read.

    Attributes:
        got: where it comes from, for people.
        result: by the rules of the engine's result pages; otherwise by those of the site's pages.
    """

    site: str
    body: bytes
    headers: Mapping[str, str]
    url: str
    got: Mapping[str, Any]
    result: bool

    def preview(self, catalog: Catalog, now: datetime, product: str | None = None) -> RulePreview:
        """The result of the rules on it. Raises ProductNameError."""
        return preview_rules(
            catalog,
            self.site,
            self.body,
            self.headers,
            self.url,
            result=self.result,
            now=now,
            status=self.got.get("status", 200),
            product=product,
        )


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
    return Trial(
        site=site,
        body=answer.body,
        headers=dict(answer.headers),
        url=answer.url,
        got=answer.facts(),
        result=result,
    )


def given(catalog: Catalog, site: str, body: bytes, read_as: str | None, got: Mapping[str, Any]) -> Trial:
    """A page that is at hand."""
    result = read_as == "result"
    # Its address is not known. A page at the root would be read as a home page.
    url = catalog.engine_of(site).url if result else f"http://{site}/page.html"
    return Trial(site=site, body=body, headers={}, url=url, got={**got, "bytes": len(body)}, result=result)
