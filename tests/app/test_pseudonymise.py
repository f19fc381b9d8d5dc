"""REVIEWLOOP_PSEUDONYMISE: no author's name in the store or in the file, and who is the same stays the same."""

import csv
import sqlite3
import stat
from contextlib import closing

import pytest
from patience import PATIENCE_S
from tiny_world import PRODUCTS

from app.run.setting_fields import Settings
from app.run.wiring import pseudonyms
from splitter.errors import InputError
from tasks.worker.pseudonyms import NOBODY_PREFIX, PREFIX

ON = {"REVIEWLOOP_PSEUDONYMISE": "on"}
KEY = {"REVIEWLOOP_PSEUDONYM_KEY": "a key for this test"}


def authors(path):
    with path.open(encoding="utf-8", newline="") as file:
        return [(row["site"], row["author"]) for row in csv.DictReader(file)]


def test_an_export_hides_names_and_keeps_who_is_the_same(crawled, reviewloop, tmp_path):
    plain, hidden = tmp_path / "plain.csv", tmp_path / "hidden.csv"
    crawled.ask("export", "reviews", "-o", plain)
    told = reviewloop("export", "reviews", "-o", hidden, "--db", crawled.url, **ON, **KEY)
    assert told.exit_code == 0, told.stderr
    named, unnamed = authors(plain), authors(hidden)
    assert len(named) == len(unnamed) > 50
    assert all(
        after.startswith((PREFIX, NOBODY_PREFIX)) if before else not after
        for (_, before), (_, after) in zip(named, unnamed, strict=True)
    )
    assert len(set(named)) == len(set(zip(named, unnamed, strict=True))) == len(set(unnamed)) > 10


def test_what_is_crawled_so_never_holds_a_name(reviewloop, lab, tmp_path):
    url, file = f"sqlite:///{tmp_path / 'reviews.db'}", tmp_path / "reviews.csv"
    result = reviewloop(
        "run", PRODUCTS[0], "--until-done", "--for", PATIENCE_S, "--lab", f"{lab.host}:{lab.port}",
        "--db", url, **ON, **KEY,
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    assert reviewloop("export", "reviews", "-o", file, "--db", url).exit_code == 0
    stored = authors(file)
    assert len(stored) > 20
    assert all(author.startswith((PREFIX, NOBODY_PREFIX)) for _, author in stored if author)
    assert any(author for _, author in stored)
    with closing(sqlite3.connect(tmp_path / "reviews.db")) as conn:
        refused = [
            author for (author,) in conn.execute("SELECT author FROM reviews WHERE refused IS NOT NULL")
        ]
    assert any(refused)
    assert all(author.startswith((PREFIX, NOBODY_PREFIX)) for author in refused if author)
    assert "a key for this test" not in (tmp_path / "reviews.db").read_bytes().decode("latin-1")


def test_without_a_key_one_is_made_and_kept(tmp_path):
    settings = Settings(pseudonymise=True, keys_folder=str(tmp_path))
    first, second = pseudonyms(settings), pseudonyms(settings)
    assert first is not None
    assert second is not None
    assert first.pseudonym("a.cn", "王小明") == second.pseudonym("a.cn", "王小明")
    assert stat.S_IMODE(settings.pseudonym_key_file.stat().st_mode) == 0o600
    assert [one.name for one in tmp_path.iterdir()] == ["reviewloop.pseudonym-key"]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (
            Settings(pseudonymise=True, pseudonym_key="short"),
            "REVIEWLOOP_PSEUDONYM_KEY: a key of 5 characters",
        ),
        (Settings(pseudonymise=True, keys_folder="/there/is/none"), "another REVIEWLOOP_KEYS_FOLDER"),
    ],
)
def test_a_key_that_does_not_do_is_told(settings, says):
    with pytest.raises(InputError, match=says):
        pseudonyms(settings)
