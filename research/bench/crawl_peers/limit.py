"""The limit: libcurl's multi interface, a parser and the six fields; nothing stored, no duplicates looked for.

The variant is the parser, one of `READERS`; `fetch` reads nothing, and gives the rate of download and page server.
"""

from __future__ import annotations

import time
from io import BytesIO

import pycurl

from research.bench.crawl_peers.contest import AT_ONCE, Call, Figures, Watch, take_part
from research.bench.crawl_peers.readers import READERS


def crawl(call: Call) -> Figures:
    """Fetch and read every page once."""
    read = READERS.get(call.variant, len)
    waiting = iter(call.urls())
    multi = pycurl.CurlMulti()
    bodies: dict[pycurl.Curl, tuple[BytesIO, str]] = {}
    watch = Watch()

    def begin(handle: pycurl.Curl) -> bool:
        url = next(waiting, None)
        if url is None:
            return False
        body = BytesIO()
        bodies[handle] = body, url
        handle.setopt(pycurl.URL, url)
        handle.setopt(pycurl.WRITEDATA, body)
        multi.add_handle(handle)
        return True

    running = sum(begin(pycurl.Curl()) for _ in range(AT_ONCE))
    done, first_page_at = 0, 0.0
    while running:
        while multi.perform()[0] == pycurl.E_CALL_MULTI_PERFORM:
            pass
        _, finished, failed = multi.info_read()
        if failed:
            raise OSError(f"a page was not answered: {failed[0][2]}")
        for handle in finished:
            multi.remove_handle(handle)
            body, url = bodies[handle]
            if not read(body.getvalue()):
                raise ValueError(f"{url}: nothing read")
            done += 1
            first_page_at = first_page_at or time.time()
            running -= not begin(handle)
        if not finished:
            multi.select(1.0)
    return watch.figures(done, first_page_at)


if __name__ == "__main__":
    take_part(crawl)
