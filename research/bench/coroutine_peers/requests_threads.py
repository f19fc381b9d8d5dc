"""requests in threads, as its documentation advises for speed: a session a thread, whose connection stays open.

`trust_env` is off, so that no request looks for proxies and a netrc file: it is the faster setting.
"""

from __future__ import annotations

from collections.abc import Callable

import requests

from research.bench.coroutine_peers import window
from tasks.worker.settings import CrawlSettings


def fetcher() -> Callable[[str], int]:
    """What one thread fetches with: it returns the size of a page's body."""
    session = requests.Session()
    session.trust_env = False
    session.headers["User-Agent"] = CrawlSettings().user_agent

    def fetch(url: str) -> int:
        answer = session.get(url, timeout=30)
        answer.raise_for_status()
        return len(answer.content)

    return fetch


if __name__ == "__main__":
    window.tell(window.in_threads(window.ordered(), fetcher))
