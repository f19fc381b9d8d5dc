"""Hypothesis's pages and selectors for the tests of readers: well-formed, so that every parser builds one tree."""

from __future__ import annotations

from html import escape

from hypothesis import strategies as st

SELECTORS = [
    "div.r",
    ".r",
    ".t",
    "span",
    "em.t",
    "div > .t",
    ".r .t",
    "section .r > *",
    ".t, em",
    "em, .r",
    ".t + span",
    ".r ~ .t",
    ":first-child",
    "span:not(.t)",
    ":has(> em)",
    "[data-id]",
    "b",
    "noscript em",
]

# Between these, words must not grow together.
BLOCKS = ["p", "div", "br", "li", "tr", "td", "th", "dt", "dd", "blockquote", "section", "article"]
BLOCKS += ["h1", "h2", "h3", "h4", "h5", "h6"]

_TEXTS = st.text("甲乙a1 \n\u3000\xa0<&\"'，", max_size=6)
_ATTRIBUTES = st.sampled_from(
    [
        "",
        ' class="r"',
        ' class="t"',
        ' class="r t"',
        ' class="t" data-id="7"',
        ' data-id=" a  b "',
        " hidden",
        ' style="color:red"',
        ' STYLE="Display: None"',
        ' style="display:&#110;one"',
    ]
)
_LEAVES = st.one_of(
    _TEXTS.map(escape),
    _TEXTS.map(escape),
    st.sampled_from(
        [
            "<br>",
            "<!-- <em class='t'>x</em> -->",
            "<script>var t = '<em class=t>x</em>';</script>",
            "<style>.t{}</style>",
            "<noscript><em class='t'>n</em></noscript>",
            "<template><em class='t'>m</em></template>",
        ]
    ),
)


def _element(tag: str, attributes: str, children: list[str]) -> str:
    return f"<{tag}{attributes}>{''.join(children)}</{tag}>"


_PARTS = st.recursive(
    _LEAVES,
    lambda parts: st.builds(
        _element,
        st.sampled_from(["div", "section", "span", "em", "b"]),
        _ATTRIBUTES,
        st.lists(parts, max_size=4),
    ),
    max_leaves=25,
)
_FIELDS = st.sampled_from(
    ["<em>1</em>", "<em class='t'>2</em>", "<span class='t'>3</span>", "<b>4</b>", "<em></em>", "5"]
)
_RECORDS = st.lists(
    st.lists(_FIELDS, max_size=3).map(lambda fields: f"<div class='r'>{''.join(fields)}</div>") | _FIELDS,
    max_size=5,
)


def _page(title: str, parts: list[str]) -> str:
    head = f"<head><title>{escape(title)}</title></head>"
    return f"<!DOCTYPE html><html>{head}<body>{''.join(parts)}</body></html>"


# The same part again and again, as pages made from a template have it, or one that differs each time.
PAGES = st.builds(
    _page,
    _TEXTS,
    st.one_of(
        st.lists(_PARTS, max_size=6),
        st.builds(lambda part, count: [f"<div class='r'>{part}</div>"] * count, _PARTS, st.integers(1, 4)),
        _RECORDS,
        st.lists(_PARTS.map(lambda part: f"<div class='r'>{part}</div>"), max_size=4),
    ),
)
