"""SearXNG, over its JSON API (``format=json``)."""

from __future__ import annotations

import json

from app.lab.answers import Answer
from app.lab.document import JSON, Document, notice
from app.lab.engines.model import EngineFormat, Results
from splitter.catalog.model import Engine


def _results(results: Results) -> str:
    return json.dumps(
        {
            "query": " ".join(results.keywords),
            # Since 2023 it is 0 more often than not: engines report none.
            "number_of_results": results.found,
            "results": [
                {
                    "url": entry.url,
                    "title": entry.title,
                    "content": entry.abstract,
                    "publishedDate": f"{entry.post.at:%Y-%m-%dT%H:%M:%S}",
                    "thumbnail": "",
                    "engine": "baidu",
                    "engines": ["baidu", "sogou"],
                    "parsed_url": ["http", entry.url.split("/")[2], "/", "", "", ""],
                    "template": "default.html",
                    "positions": [place],
                    "score": round(1 / place, 3),
                    "category": "general",
                }
                for place, entry in enumerate(results.entries, start=1)
            ],
            "answers": [],
            "corrections": [],
            "infoboxes": [],
            "suggestions": [f"{' '.join(results.keywords)} 投诉"],
            "unresponsive_engines": [],
        },
        ensure_ascii=False,
    )


def _limited(_engine: Engine) -> Document:
    return notice(429, "Too Many Requests")


SEARXNG = EngineFormat(_results, JSON, {Answer.CAPTCHA: _limited, Answer.TOO_FREQUENT: _limited})
