"""Threads in the shapes that forum programs give them: who wrote a post, when, and what is its text."""

import json
from datetime import UTC, datetime

from splitter.catalog.rules import PageRules
from tasks.domain.pages import Review
from tasks.reading.extract import read_page

NOW = datetime(2026, 6, 1, tzinfo=UTC)
TEXTS = [
    "The lid of my kettle came off after a month, and the maker never answered my letters.",
    "Mine did the same. I glued the hinge, and it has held since the spring.",
    "A new lid costs five euros in the shop at the station; ask for the older model.",
    "Thanks, I got one there this morning and it fits without any glue at all.",
]
NAMES = ["khixxx", "Mara Lund", "tidepool", "khixxx"]
DAYS = ["2024-05-01", "2024-05-02", "2024-05-03", "2024-05-04"]


def read(*posts: str, head: str = "") -> tuple[Review, ...]:
    title = "Kettle lid came off"
    html = (
        f"<html><head><title>{title}</title>{head}</head><body><h1>{title}</h1>{''.join(posts)}</body></html>"
    )
    rules = PageRules(main_text=True)
    url = "https://forum.example.org/threads/kettle.12/"
    return read_page(html, url, rules, now=NOW).reviews


def said(reviews: tuple[Review, ...]) -> list[tuple[str, str]]:
    return [(one.author, one.date.date().isoformat() if one.date else "") for one in reviews]


def pane(n: int, attribute: str = "") -> str:
    """A post beside a pane about who wrote it: portrait, name, title, the day of joining."""
    name = NAMES[n] if NAMES[n] != "Mara Lund" else f'<span class="username--style2">{NAMES[n]}</span>'
    return (
        f'<article class="message message--post" {attribute}><section class="message-user" itemprop="author">'
        f'<a class="avatar" href="/members/{n}/"><span class="avatar-m">{NAMES[n][0].upper()}</span></a>'
        f'<h4 class="message-name"><a class="username" href="/members/{n}/">{name}</a></h4>'
        f'<h5 class="userTitle" itemprop="jobTitle">{["Old hand", "Kettle wizard", "Rookie", "Old hand"][n]}</h5>'
        f"<dl><dt>Joined</dt><dd>Mar {n + 3}, 2015</dd></dl></section>"
        f'<time datetime="{DAYS[n]}T10:00:00+0000">{DAYS[n]}</time>'
        f'<div class="message-body"><div class="bbWrapper">{TEXTS[n]}</div></div></article>'
    )


def test_an_author_is_no_title_no_day_and_no_letter_of_a_portrait():
    assert said(read(*map(pane, range(4)))) == list(zip(NAMES, DAYS, strict=True))


def test_an_author_that_an_attribute_tells():
    posts = [
        f'<li class="message" data-author="{NAMES[n]}"><div class="who"><a class="user" href="/members/9/">Team {n}</a>'
        f'<b>{NAMES[n]}</b></div><span class="date">{DAYS[n]} 10:00</span><div class="content">{TEXTS[n]}</div></li>'
        for n in range(3)
    ]
    assert said(read(*posts)) == list(zip(NAMES[:3], DAYS[:3], strict=True))


def test_who_asked_and_not_who_edited():
    posts = [
        f'<div class="answer"><div class="text">{TEXTS[n]}</div><div class="signature-line"><span>edited</span>'
        f'<time datetime="{DAYS[n]}T12:00:00Z">{DAYS[n]}</time>'
        f'<div class="user-details"><a href="/users/7{n}/">Editor {n}</a></div></div>'
        f'<div class="signature-line"><time datetime="{DAYS[n]}T10:00:00Z">{DAYS[n]}</time>'
        f'<div class="user-details" itemprop="author"><a href="/users/{n}/">{NAMES[n]}</a></div></div></div>'
        for n in range(3)
    ]
    assert [author for author, _ in said(read(*posts))] == NAMES[:3]


def test_a_day_with_a_clock_is_the_posts_and_not_that_of_joining():
    posts = [
        f'<div class="post"><dl class="pane"><dt><a href="/memberlist.php?u={n}">{NAMES[n]}</a></dt>'
        f"<dd>Founded: Dec 1{n}, 2011</dd></dl><p>&raquo; Fri May {n + 3}, 2024 4:08 am</p>"
        f'<div class="content">{TEXTS[n]}</div></div>'
        for n in range(3)
    ]
    assert said(read(*posts)) == [(NAMES[n], f"2024-05-0{n + 3}") for n in range(3)]


def test_a_text_in_a_block_that_readers_may_quote():
    posts = [
        f'<li class="message"><a class="username" href="/members/{n}/">{NAMES[n]}</a>'
        f'<blockquote class="messageText SelectQuoteContainer">{TEXTS[n]}</blockquote>'
        f'<span class="DateTime" title="{DAYS[n]} 10:00">{DAYS[n]}</span></li>'
        for n in range(3)
    ]
    assert [one.body for one in read(*posts)] == TEXTS[:3]


def test_a_time_that_only_a_script_would_write():
    posts = [
        f'<li class="post" data-username="{NAMES[n]}"><a href="/user/{n}">{NAMES[n]}</a>'
        f'<a class="timeago" href="/post/{n}" title="{DAYS[n]}T10:58:44.717Z"></a>'
        f'<div class="content">{TEXTS[n]}</div></li>'
        for n in range(3)
    ]
    assert said(read(*posts)) == list(zip(NAMES[:3], DAYS[:3], strict=True))


def test_a_post_called_after_the_signature_in_it_keeps_its_text():
    posts = [
        f'<div class="post"><a class="username" href="/members/{n}/">{NAMES[n]}</a>'
        f'<span class="date">{DAYS[n]} 10:00</span>'
        f'<div class="{"height_sig" if n else "height"}"><div class="content">{TEXTS[n]}</div>'
        f"{'<div class=signature>Ask me about tea.</div>' if n else ''}</div></div>"
        for n in range(3)
    ]
    assert [one.body for one in read(*posts)] == TEXTS[:3]


def test_a_mention_stays_in_the_text():
    posts = [
        f'<div class="post"><a class="username" href="/members/{n}/">{NAMES[n]}</a>'
        f'<span class="date">{DAYS[n]} 10:00</span>'
        f'<div class="content"><a class="username" href="/members/5/">@{NAMES[n + 1]}</a> {TEXTS[n]}</div></div>'
        for n in range(3)
    ]
    assert [one.body for one in read(*posts)] == [f"@{NAMES[n + 1]} {TEXTS[n]}" for n in range(3)]


def test_marked_elements_where_a_script_holds_the_best_answer_alone():
    answer = {"@type": "Answer", "text": TEXTS[1], "author": {"name": "Mara Lund"}}
    best = {
        "@type": "QAPage",
        "mainEntity": {"@type": "Question", "name": "Kettle", "acceptedAnswer": answer},
    }
    posts = [
        '<div itemprop="comment" itemscope itemtype="http://schema.org/Comment">'
        f'<span itemprop="author"><b itemprop="name">{NAMES[n]}</b></span>'
        f'<time itemprop="datePublished" datetime="{DAYS[n]}T10:00:00Z"></time>'
        f'<div itemprop="text">{TEXTS[n]}</div></div>'
        for n in range(4)
    ]
    source = json.dumps({"@context": "https://schema.org", **best})
    head = f'<script type="application/ld+json">{source}</script>'
    found = read(f"<noscript>{''.join(posts)}</noscript>", head=head)
    assert said(found) == list(zip(NAMES, DAYS, strict=True))


def test_an_article_is_not_read_with_the_next_one_that_is_loaded_below_it():
    articles = [
        f'<article class="story"><h1>{title}</h1><span class="author">{NAMES[n]}</span>'
        f'<time datetime="{DAYS[n]}">{DAYS[n]}</time>'
        + "".join(f"<p>{text}</p>" for text in texts)
        + "</article>"
        for n, (title, texts) in enumerate(
            [("Kettle lid came off", TEXTS[:2]), ("Tram line opens", [text.upper() for text in TEXTS])]
        )
    ]
    (found,) = read("".join(articles))
    assert TEXTS[1] in found.body
    assert TEXTS[0].upper() not in found.body
