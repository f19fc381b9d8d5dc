"""Every word and mark of a page is from a catalog or is data."""

from __future__ import annotations

from dashboard import Served
from pseudo_catalog import all_in_brackets, list_marks_outside, list_words_outside, read_page
from test_web_pages import PAGES

from tasks.reading.judge.theme_file import builtin_themes

_MORE = ("/import", "/imports", "/reviews/999", "/pairs/none/node1", "/nodes?lang=zh", "/schedules?lang=fr")
_DATA = (
    r"https?://\S+|[\w.-]+\.(?:com|cn|org|net|de|php|html|xml|txt|me|yaml)\b\S*|\bnode\d\b|Asia/Shanghai"
    r"|javascript:\S+|<img|document\.title='owned?'?|</?script>?|\bonerror\b|\bsrc\b|gnp\.exe"
    r"|blocked: |shop-export|shop\.example|250ml|\bEnglish\b|\b(?:reviewloop|API|baidu|robots\.txt)\b"
    r"|weibo-\w+|\(?\bthread\b\)?|complaint\s+microblog|\d ?ml\b|"
    + "|".join(theme.en for theme in builtin_themes().goods.values())
)
"""Names and addresses of the sample, names of themes,
names of engines and rules in the catalog, and what a hostile page holds."""


def test_every_word_of_a_page_is_from_a_catalog(sample: Served) -> None:
    outside = {}
    with all_in_brackets():
        for path in (*PAGES, *_MORE):
            page = read_page(sample.get(path).text)
            found = {*list_words_outside(page, _DATA), *list_marks_outside(page)}
            if found:
                outside[path] = found
    assert outside == {}
