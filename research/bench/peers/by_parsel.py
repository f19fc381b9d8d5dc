"""The six fields of every record of `research.tools.pages`, read with parsel."""

from __future__ import annotations

from parsel import Selector

from research.bench.peers.contest import Page


def with_parsel(page: Selector) -> Page:
    """By CSS, as parsel's documentation shows it."""
    return page.css("title::text").get(""), [
        (
            record.attrib["data-id"],
            record.css("h3.review-title::text").get(""),
            record.css("div.review-body::text").get(""),
            record.css("a.author::text").get(""),
            record.css("span.date::text").get(""),
            float(record.css("span.star::attr(data-score)").get("0")),
        )
        for record in page.css("li.review")
    ]
