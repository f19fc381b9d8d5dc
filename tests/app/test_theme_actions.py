"""A term is added to a themes file as a person would write it: the rest stays, and a wrong file is not written."""

from __future__ import annotations

import stat

import pytest

from app.actions import theme_actions
from app.actions.theme_actions import NewTheme, add_term, adopt_term
from splitter.errors import CatalogError, InputError
from tasks.reading.judge.theme_file import IN_FORCE, builtin_text, builtin_themes, parse_themes
from tasks.store.queue import notices

FLOW = """\
# What we look for.
goods:
  leak:
    zh: 漏
    en: Leak
    terms: [漏了,  # the usual one
      漏液]
    except: [没漏]  # never

# Cars.
car:
  noise: {zh: 噪音, en: Noise}
"""
BLOCK = """\
goods:
    leak:
        zh: 漏
        en: Leak
        terms:
        - 漏了
        - 漏液  # from the lab
    smell:
        zh: 气味
        en: Smell
# the end"""


def lines_added(before, after):
    """Return the lines of a text that are not in the one before."""
    return [line for line in after.splitlines() if line not in before.splitlines()]


@pytest.mark.parametrize(
    ("text", "category", "theme", "added"),
    [
        (FLOW, "goods", "leak", ["      漏液, 渗水]"]),
        (FLOW, "car", "noise", ["  noise: {terms: [渗水], zh: 噪音, en: Noise}"]),
        (BLOCK, "goods", "leak", ["        - 渗水"]),
        (BLOCK, "goods", "smell", ["        terms: [渗水]"]),
        (FLOW.replace("\n", "\r\n"), "goods", "leak", ["      漏液, 渗水]"]),
    ],
)
def test_a_term_is_added_and_the_rest_stays(text, category, theme, added):
    after = add_term(text, category, theme, "渗水")
    assert lines_added(text, after) == added
    assert after.count("#") == text.count("#")
    assert after.count("\r\n") == text.count("\r\n") + (after.count("\n") - text.count("\n")) * ("\r" in text)
    assert "渗水" in parse_themes(after, "t").list_themes(category)[theme].terms


@pytest.mark.parametrize(
    ("text", "category"), [(FLOW, "goods"), (BLOCK, "goods"), (BLOCK, "restaurant"), (FLOW, "car")]
)
def test_a_theme_is_added_behind_the_others(text, category):
    after = add_term(text, category, "hair", "A..b", NewTheme("头发", "Hair: any"))
    themes = parse_themes(after, "t").list_themes(category)
    assert list(themes)[-1] == "hair"
    assert (themes["hair"].zh, themes["hair"].en, themes["hair"].terms) == ("头发", "Hair: any", ("A..b",))
    assert after.count("#") == text.count("#")


@pytest.mark.parametrize("term", ["yes", "12", "a: b", "# x", "[x]", "'", "黑 点", "渗水..地板"])
def test_any_term_is_written_so_that_it_is_read_again(term):
    assert term in parse_themes(add_term(FLOW, "goods", "leak", term), "t").goods["leak"].terms


@pytest.mark.parametrize("theme", builtin_themes().goods)
def test_every_theme_of_the_project_can_get_a_term(theme):
    after = add_term(builtin_text(), "goods", theme, "从没见过")
    assert "从没见过" in parse_themes(after, "t").goods[theme].terms
    assert max(map(len, after.splitlines())) <= max(map(len, builtin_text().splitlines()))


@pytest.mark.parametrize(
    ("text", "theme", "term", "new", "message"),
    [
        (FLOW, "leak", "漏液", None, "already"),
        (FLOW, "smell", "漏液", None, "there are leak"),
        (FLOW, "leak", "漏", NewTheme("漏", "Leak"), "already"),
        (FLOW, "leak", "a..b..c", None, "two parts"),
        (FLOW, "Big", "漏水", NewTheme("大", "Big"), "small letters"),
        (FLOW, "", "漏水", NewTheme("大", "Big"), "small letters"),
        (FLOW, "a: 1\n  b", "漏水", NewTheme("大", "Big"), "small letters"),
        ("goods: &a\n  leak:\n    zh: 漏\n    en: Leak\ncar: *a\n", "leak", "漏水", None, "by hand"),
    ],
)
def test_what_would_be_wrong_is_refused(text, theme, term, new, message):
    with pytest.raises((InputError, CatalogError), match=message):
        add_term(text, "goods", theme, term, new)


def test_the_first_term_makes_a_copy_of_the_project_file(store, tmp_path):
    path = tmp_path / "themes.yaml"
    IN_FORCE.use(path, is_optional=True)
    try:
        _, before = IN_FORCE.get()
        adopt_term(store, path, "goods", "foreign_matter", "黑渣渣", "ich")
        found, version = IN_FORCE.get()
    finally:
        IN_FORCE.use(None)
    assert version != before
    assert "黑渣渣" in found.goods["foreign_matter"].terms
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    with store.read() as tx:
        (row,) = notices.list_audit_rows(tx, most=9)
    assert (row.who, row.action, row.subject) == ("ich", "add term", "foreign_matter")
    assert row.detail == {"term": "黑渣渣", "file": str(path)}


def test_a_file_with_a_mistake_stays_as_it_is(store, tmp_path):
    path = tmp_path / "own.yaml"
    path.write_text("goods:\n  leak: {zh: 漏}\n", "utf-8")
    path.chmod(0o600)
    with pytest.raises(CatalogError, match=r"own\.yaml:2: goods\.leak"):
        adopt_term(store, path, "goods", "leak", "漏水", "ich")
    path.write_text(FLOW, "utf-8")
    adopt_term(store, path, "goods", "leak", "漏水", "ich")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_file_of_the_project_is_not_edited(store, monkeypatch):
    own = theme_actions.files("tasks.reading.judge").joinpath("themes.yaml")
    with pytest.raises(InputError, match="REVIEWLOOP_THEMES"):
        adopt_term(store, own, "goods", "foreign_matter", "黑渣渣", "ich")
