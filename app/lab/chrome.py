"""The parts of a page around its content: navigation, side bar, footer, style, script, and the encoding.

They depend only on the name of the site and are encoded once, so a page costs little more than its content.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from random import Random

from app.lab import chance
from app.lab.pages import TEMPLATES, WORDING, draw_title

_STYLE = "\n".join(
    f".{name}{{margin:{i}px auto;padding:{2 * i}px;border:1px solid #{i}c{i}c{i}c;"
    f"font:12px/1.{i} 宋体,Arial;color:#3{i}3}}"
    for i, name in enumerate(("top", "nav", "wrap", "main", "side", "box", "foot", "crumb", "ad"), start=1)
)


@dataclass(frozen=True, slots=True)
class SiteEncoding:
    """The encoding of a site's pages, and the places that declare it.

    Attributes:
        codec: "utf-8", "gbk", "gb18030", ...
        header: Charset in the Content-Type header. Empty leaves it out.
        meta: Charset in the meta element. Empty leaves the element out.
    """

    codec: str
    header: str
    meta: str


UTF8 = SiteEncoding("utf-8", "utf-8", "utf-8")
_GBK = (SiteEncoding("gbk", "GBK", ""), SiteEncoding("gbk", "", "gb2312"), SiteEncoding("gbk", "", ""))


def encoding_of(site: str, stated: str = "") -> SiteEncoding:
    """Return the encoding of a site.

    A third of the sites use GBK, and declare it in the header, in the page or nowhere.

    Args:
        stated: Encoding that the catalog states for the site. If it is not empty, pages have it and don't declare it.
    """
    if stated:
        return SiteEncoding(stated, "", "")
    draw = chance.number(0, "encoding", site)
    return _GBK[draw // 3 % len(_GBK)] if draw % 3 == 0 else UTF8


class Chrome:
    """The parts around the content that all pages of one site share."""

    def __init__(self, site: str, title: str, encoding: SiteEncoding) -> None:
        self.encoding = encoding
        rng = chance.generator(0, "chrome", site)
        charset = self.encoding.meta
        meta = f'<meta http-equiv="Content-Type" content="text/html; charset={charset}">' if charset else ""
        self._head = self._encode(f"<!DOCTYPE html>\n<html>\n<head>\n{meta}\n<title>")
        assets, top = _write_assets(rng), _write_top(rng, site, title)
        self._before = self._encode(f"_{escape(title)}</title>\n{assets}</head>\n{top}")
        self._after = self._encode(_write_bottom(rng, site, title))

    @property
    def content_type(self) -> str:
        """The Content-Type header of the site's pages."""
        return f"text/html; charset={self.encoding.header}" if self.encoding.header else "text/html"

    def page(self, title: str, content: str) -> bytes:
        """Return a whole page, encoded. `title` is plain text, `content` is HTML."""
        return b"".join(
            (self._head, self._encode(escape(title)), self._before, self._encode(content), self._after)
        )

    def _encode(self, html: str) -> bytes:
        # GBK lacks some characters, mostly emoji in reviews. A character reference stands for them.
        return html.encode(self.encoding.codec, "xmlcharrefreplace")


def _write_assets(rng: Random) -> str:
    script = TEMPLATES["chrome"]["script"] % {"id": f"{int(rng.random() * 2**63):016x}"}
    return (
        '<meta name="keywords" content="投诉,维权,消费者,质量">\n'
        f'<style type="text/css">\n{_STYLE}\n</style>\n<script type="text/javascript">{script}</script>\n'
    )


def _write_top(rng: Random, site: str, title: str) -> str:
    channels = "".join(
        f'<li><a href="/channel/{i}/">{name}</a></li>' for i, name in enumerate(WORDING["channels"])
    )
    today = int(rng.random() * 900)
    return TEMPLATES["chrome"]["top"].format(title=escape(title), site=site, today=today, channels=channels)


def _write_bottom(rng: Random, site: str, title: str) -> str:
    boxes = "\n".join(
        f'<div class="box"><h3>{name}</h3><ul>{_write_links(rng, 8 + int(rng.random() * 14))}</ul></div>'
        for name in ("热点投诉", "最新受理", "本周排行")
    )
    friends = " | ".join(f'<a href="/friend/{i}">{name}</a>' for i, name in enumerate(WORDING["friends"]))
    bottom, permit = TEMPLATES["chrome"]["bottom"], int(rng.random() * 10**8)
    return bottom.format(boxes=boxes, friends=friends, title=escape(title), site=site, permit=permit)


def _write_links(rng: Random, count: int) -> str:
    return "".join(
        f'<li><a href="/list/{int(rng.random() * 10**7)}.html">{draw_title(rng)}</a></li>'
        for _ in range(count)
    )
