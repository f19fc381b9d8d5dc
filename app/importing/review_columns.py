"""Find the column for each field of reviews in a file: by a person's choice, by the collector, or by the header.

A collector is a program or shop that exported the file. docs/import.md lists the sources of all column names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from app.importing.columns import (
    ColumnChoice,
    FieldPlaces,
    column_key,
    column_words,
    find_column,
    find_fields,
)
from splitter.errors import InputError, list_names

FIELDS = ("product", "body", "date", "author", "title", "rating", "url", "site", "variant")
NEEDED = ("body", "product")

_WORDS = column_words("reviews")

_TEMPLATE = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Collector:
    """A well-known program or shop that exports reviews, with the columns of its files.

    Attributes:
        name: name of the collector. The source of the reviews gets this name if a person gives none.
        needs: columns that identify files of the collector.
        site: the site that the reviews come from.
        columns: columns by field, for fields that the header alone does not identify.
        url: address of a record's page, with names of columns in braces; empty if a column contains the address.
    """

    name: str
    needs: frozenset[str]
    site: str
    columns: Mapping[str, str] = field(default_factory=dict)
    url: str = ""


def _collector(name: str, needs: str, site: str, url: str = "", **columns: str) -> Collector:
    return Collector(name, frozenset(needs.split()), site, MappingProxyType(columns), url)


COLLECTORS = (
    _collector("mediacrawler-weibo-comments", "comment_id create_date_time note_id content comment_like_count",
               "weibo.com", "https://m.weibo.cn/detail/{note_id}", date="create_date_time"),
    _collector("mediacrawler-weibo-posts", "note_id content create_date_time note_url shared_count",
               "weibo.com", date="create_date_time"),
    _collector("mediacrawler-xhs-comments", "comment_id create_time note_id content pictures",
               "xiaohongshu.com", "https://www.xiaohongshu.com/explore/{note_id}"),
    _collector("mediacrawler-xhs-notes", "note_id desc time last_update_time note_url image_list",
               "xiaohongshu.com", "https://www.xiaohongshu.com/explore/{note_id}", body="desc", date="time"),
    _collector("mediacrawler-douyin-comments", "comment_id create_time aweme_id content",
               "douyin.com", "https://www.douyin.com/video/{aweme_id}"),
    _collector("mediacrawler-douyin-videos", "aweme_id desc create_time aweme_url",
               "douyin.com", body="desc"),
    _collector("mediacrawler-bilibili-comments", "comment_id parent_comment_id create_time video_id content",
               "bilibili.com", "https://www.bilibili.com/video/av{video_id}"),
    _collector("mediacrawler-kuaishou-comments", "comment_id create_time video_id content",
               "kuaishou.com", "https://www.kuaishou.com/short-video/{video_id}"),
    _collector("mediacrawler-tieba-comments", "comment_id content publish_time note_url tieba_name",
               "tieba.baidu.com"),
    _collector("mediacrawler-tieba-posts", "note_id title desc publish_time tieba_name",
               "tieba.baidu.com", body="desc"),
    _collector("mediacrawler-zhihu-comments", "comment_id content publish_time content_id content_type",
               "zhihu.com"),
    _collector("mediacrawler-zhihu-answers", "content_id content_type content_text content_url created_time",
               "zhihu.com", date="created_time"),
    _collector("jd-comments", "content creationTime score nickname", "jd.com",
               "https://item.jd.com/{referenceId}.html"),
    _collector("tmall-comments", "rateContent rateDate displayUserNick", "tmall.com"),
    _collector("taobao-comments", "feedback feedbackDate userNick", "taobao.com"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class FieldColumns:
    """The column that each field of a review is read from.

    Attributes:
        columns: columns by field; fields without a column are left out.
        collector: the collector that made the file; `None` if it is unknown.
        site: site for records that name none; empty to use the collector's site.
    """

    columns: Mapping[str, str]
    collector: Collector | None = None
    site: str = ""

    def list_unused(self, columns: Sequence[str], choice: ColumnChoice) -> list[str]:
        """Return the columns that no field is read from, except those that a person chose to ignore."""
        used = set(self.columns.values())
        if self.collector is not None:
            used.update(_TEMPLATE.findall(self.collector.url))
        ignored = {find_column(columns, column) for column in choice.ignored}
        keys = {place: column_key(columns, place) for place, name in enumerate(columns) if name}
        return [key for place, key in keys.items() if key not in used and place not in ignored]

    def text(self, name: str, cells: Mapping[str, str]) -> str:
        """Return the text of a field in a record; empty if the field has no column."""
        column = self.columns.get(name)
        if column is not None:
            return cells.get(column, "")
        if name == "site" and self.site:
            return self.site
        if self.collector is None:
            return ""
        if name == "url" and self.collector.url:
            missing = [one for one in _TEMPLATE.findall(self.collector.url) if one not in cells]
            return "" if missing else self.collector.url.format_map(cells)
        return self.collector.site if name == "site" else ""


def field_columns(columns: Sequence[str], choice: ColumnChoice, origin: str) -> FieldColumns:
    """Choose a column for each field: by a person's choice, then by the collector and the headers.

    Raises:
        InputError: a chosen column does not exist, or no column is recognised as the texts of reviews.
    """
    choice.check(columns, origin)
    collector = _collector_of(columns)
    places = review_fields(columns, choice, is_header=True)
    found = {name: column_key(columns, place) for name, place in places.items()}
    if "body" not in found:
        named = list_names([*filter(None, columns)])
        raise InputError(
            "{origin}: none of the columns {named} is known to hold the texts of reviews; name it: --map "
            "body=COLUMN, and its row if it is another one: --header-row N",
            origin=origin,
            named=named,
        )
    return FieldColumns({name: found[name] for name in FIELDS if name in found}, collector)


def review_fields(names: Sequence[str], choice: ColumnChoice, *, is_header: bool = False) -> FieldPlaces:
    """Return the place (from 0) of each field's column. The arguments are those of `find_fields`."""
    collector = _collector_of(names)
    if collector is None:
        return find_fields(names, _WORDS, choice, is_header=is_header)
    known = {name: column for name, column in collector.columns.items() if column in names}
    made = {name: "" for name in ("url", "site") if getattr(collector, name)}
    mapping = {**made, **known, **choice.mapping}
    return find_fields(names, _WORDS, ColumnChoice(mapping, choice.ignored))


def _collector_of(columns: Sequence[str]) -> Collector | None:
    there = frozenset(columns)
    return next((one for one in COLLECTORS if one.needs <= there), None)
