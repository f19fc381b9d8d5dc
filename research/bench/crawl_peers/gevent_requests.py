"""requests + gevent + beautifulsoup4 over lxml: patched sockets, a pool of greenlets, one session whose pool is as large."""

# Patching comes before everything that imports sockets (gevent's documentation, "Monkey patching").
# ruff: noqa: E402
from gevent import monkey

monkey.patch_all()

import requests
from gevent.pool import Pool
from requests.adapters import HTTPAdapter

from research.bench.crawl_peers.contest import AT_ONCE, Call, Figures, Watch, stored_in, take_part
from research.bench.crawl_peers.readers import with_soup


def crawl(call: Call) -> Figures:
    """Crawl the pages once, each known by its address."""
    session = requests.Session()
    session.trust_env = False  # no look at proxies and .netrc for every request
    session.mount("http://", HTTPAdapter(pool_connections=1, pool_maxsize=AT_ONCE))
    watch = Watch()
    seen: set[str] = set()
    with stored_in(call.database) as rows:

        def collect(url: str) -> None:
            answer = session.get(url, timeout=30)
            answer.raise_for_status()
            rows.store(url, with_soup(answer.content, answer.encoding or "utf-8"))

        pool = Pool(AT_ONCE)
        for url in call.urls():
            if url not in seen:
                seen.add(url)
                pool.spawn(collect, url)
        pool.join(raise_error=True)
    return watch.figures(rows.pages, rows.first_page_at)


if __name__ == "__main__":
    take_part(crawl)
