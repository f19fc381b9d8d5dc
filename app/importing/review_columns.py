"""Finds which column of a file of reviews holds what: known headers, known collectors, and what a person says.

Sources of the headers and of the collectors' fields, each with its date: docs/import.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from app.importing.sheets import FieldPlaces, list_names, plain_name
from splitter.errors import InputError

FIELDS = ("product", "body", "date", "author", "title", "rating", "url", "site")

_HEADERS: Mapping[str, Mapping[str, int]] = MappingProxyType(
    {
        name: {word: place for place, word in enumerate(words.split())}
        for name, words in {
            "product": "product productname producttitle itemname itemtitle goodsname goodstitle referencename "
            "auctiontitle 商品名称 商品名 商品标题 产品名称 产品名 宝贝名称 宝贝标题 商品信息 商品 产品 宝贝 品名 "
            "sourcekeyword 搜索关键词 搜索词",
            "body": "body reviewbody reviewtext reviewcontent review commentcontent commenttext comment ratecontent "
            "feedback contenttext content text 评论内容 评价内容 评论正文 评价正文 初评内容 首次评价 初次评价 初评 "
            "投诉内容 投诉详情 问题描述 微博正文 正文 内容 文本 评论 评价 desc",
            "date": "publishedat date reviewdate reviewtime commenttime commentdate ratedate feedbackdate "
            "createdatetime creationtime createtime createdtime createdat publishtime publishdate datetext datetime "
            "time timestamp 评论时间 评价时间 评论日期 评价日期 初评时间 投诉时间 投诉日期 发布时间 发布日期 发表时间 "
            "创建时间 时间 日期",
            "author": "author author.name authorname nickname usernickname username usernick displayusernick "
            "screenname reviewername reviewer user.nickname user.screenname user.name user "
            "用户昵称 买家昵称 会员昵称 昵称 用户名称 用户名 会员名 用户账号 "
            "评论者 评论人 评价人 评价者 投诉人 发布者 发布人 买家 会员 作者 用户",
            "title": "title reviewtitle summary headline 评论标题 评价标题 投诉标题 标题",
            "rating": "rating reviewrating reviewrating.ratingvalue ratingvalue starrating score stars star "
            "overall 评分 星级 评论星级 "
            "评价星级 用户评分 打分 分数 得分",
            "url": "url reviewurl commenturl noteurl awemeurl videourl contenturl pageurl producturl itemurl link "
            "评论链接 投诉链接 商品链接 商品网址 产品链接 宝贝链接 详情链接 原文链接 链接 网址",
            "site": "site platform website 平台 网站 站点 来源平台 渠道",
        }.items()
    }
)
"""Names of columns, as `plain_name` gives them, by field. If a file has several, the first one here is taken."""

_TEMPLATE = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Collector:
    """Column names of a well-known program or shop.

    Attributes:
        name: also the source's, where none is given.
        needs: columns that all of its files have, and others' have not.
        site: of what it collects.
        columns: field to column, where the header alone does not tell.
        url: address of the page a record is of, with names of columns in braces; empty: a column has it.
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
        columns: field to column; fields without a column are left out.
        collector: whose file it is, where that is known.
        site: of all records whose column names none; empty: the collector's.
    """

    columns: Mapping[str, str]
    collector: Collector | None = None
    site: str = ""

    def text(self, name: str, cells: Mapping[str, str]) -> str:
        """A field of a record; empty where it has none."""
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


def field_columns(columns: Sequence[str], said: Mapping[str, str], origin: str) -> FieldColumns:
    """Chooses a column for each field: what a person said, then what is known of the collector and of headers.

    Args:
        said: field to column; an empty column leaves the field out.

    Raises:
        InputError: a column is not there, or none is known to hold the texts of reviews.
    """
    for name, column in said.items():
        if column and column not in columns:
            raise InputError(
                f"{origin}: there is no column {column!r} for {name}; it has {list_names(columns)}"
            )
    there = frozenset(columns)
    collector = next((one for one in COLLECTORS if one.needs <= there), None)
    found = {name: column for name, column in said.items() if column}
    if collector is not None:
        found = {name: column for name, column in collector.columns.items() if name not in said} | found
    taken = set(found.values())
    headers = {column: plain_name(column) for column in columns}
    for name in FIELDS:
        if name in found or name in said or (name == "url" and collector is not None and collector.url):
            continue
        known = _HEADERS[name]
        fitting = [one for one in columns if headers[one] in known and one not in taken]
        if fitting:
            found[name] = min(fitting, key=lambda one: known[headers[one]])
            taken.add(found[name])
    if "body" not in found:
        raise InputError(
            f"{origin}: none of the columns {list_names(columns)} is known to hold the texts of reviews; "
            "name it: --map body=COLUMN, and its row if it is another one: --header-row N"
        )
    return FieldColumns({name: found[name] for name in FIELDS if name in found}, collector)


def review_fields(names: Sequence[str], said: Mapping[str, str]) -> FieldPlaces:
    """Return the places of the columns that `field_columns` finds, that of the texts first; none if it is missing."""
    try:
        found = field_columns(list(filter(None, names)), said, "").columns
    except InputError:
        return {}
    return {name: names.index(found[name]) for name in sorted(found, key="body".__ne__)}


def said_columns(given: Sequence[str]) -> dict[str, str]:
    """Read FIELD=COLUMN, as often as it is given. Raises InputError."""
    said: dict[str, str] = {}
    for text in given:
        name, equals, column = text.partition("=")
        name = name.strip().casefold()
        if not equals or name not in FIELDS:
            raise InputError(
                f"--map {text!r}: write FIELD=COLUMN, FIELD one of {', '.join(FIELDS)}; FIELD= leaves the field out"
            )
        said[name] = column.strip()
    return said
