"""Threads around our own engine: the downloader's transfers, each performed by a thread of its own that waits.

Address checks, headers, limits and decompression are the downloader's; only the coroutines, and the multi handle
they share, are missing.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pycurl

from research.bench.coroutine_peers import window
from tasks.domain.address import authority_of, sendable
from tasks.domain.pages import Response
from tasks.fetching.downloader import FetchLimits
from tasks.fetching.guard import check_authority
from tasks.fetching.inflate import ACCEPT_ENCODING, inflate_body
from tasks.fetching.responses import headers_of
from tasks.fetching.transfer import Transfer, Wire
from tasks.worker.settings import CrawlSettings

_LIMITS = FetchLimits()
_TIMEOUT_S = 30.0
_LINES = [
    f"User-Agent: {CrawlSettings().user_agent}".encode(),
    f"Accept-Encoding: {ACCEPT_ENCODING}".encode(),
]
# libcurl's own size: our larger one serves all transfers of a multi handle, here it would be taken in each thread.
_BUFFER_BYTES = 16_384


def fetcher() -> Callable[[str], int]:
    """What one thread fetches with: it returns the size of a page's body."""
    transfer = Transfer(
        Wire(_LIMITS.body_bytes, _LIMITS.header_bytes, local_address=None, proxy=None, guarded=False)
    )
    transfer.curl.setopt(pycurl.BUFFERSIZE, _BUFFER_BYTES)

    def fetch(url: str) -> int:
        return len(_ask(transfer, sendable(url)).body)

    return fetch


def _ask(transfer: Transfer, url: str) -> Response:
    authority = authority_of(url)
    check_authority(authority, True)
    cut = url.index("://") + 3 + len(authority)
    started = time.perf_counter()
    transfer.prepare(url[:cut], url[cut:], _LINES, _TIMEOUT_S)
    transfer.curl.perform()
    headers = headers_of(transfer.head_lines)
    body = transfer.body()
    if coding := headers.get("content-encoding"):
        body = inflate_body(body, coding, max_bytes=_LIMITS.inflated_bytes, max_ratio=_LIMITS.ratio)
    answer = Response(
        url=url, status=transfer.status(), headers=headers, body=body, elapsed_s=time.perf_counter() - started
    )
    transfer.clear()
    return answer


if __name__ == "__main__":
    window.tell(window.in_threads(window.ordered(), fetcher))
