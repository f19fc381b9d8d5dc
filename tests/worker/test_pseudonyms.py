"""Pseudonyms: stable, of one site, not to be told back without the key."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tasks.reading.copies.authors import is_nobody
from tasks.worker.pseudonyms import NOBODY_PREFIX, PREFIX, Pseudonyms

KEY = "k" * 16
names = st.text(min_size=1).filter(lambda text: text.strip())


@given(names)
def test_the_same_author_has_the_same_pseudonym_and_its_own_stays_as_it_is(name):
    first, second = Pseudonyms(KEY), Pseudonyms(KEY)
    given_one = first.pseudonym("a.cn", name)
    assert given_one == second.pseudonym("a.cn", name) == first.pseudonym("a.cn", given_one)


def test_other_names_other_sites_and_other_keys_give_others():
    ours, theirs = Pseudonyms(KEY), Pseudonyms("another key of ours")
    given_ones = {
        ours.pseudonym("a.cn", "王小明"),
        ours.pseudonym("a.cn", "李雷"),
        ours.pseudonym("b.cn", "王小明"),
        theirs.pseudonym("a.cn", "王小明"),
    }
    assert len(given_ones) == 4
    assert all(one.startswith(PREFIX) and "王" not in one and "李" not in one for one in given_ones)


@pytest.mark.parametrize("name", ["j***n", "匿名", "用户123", "李女士", "Amazon Customer"])
def test_the_pseudonym_of_a_name_that_identifies_nobody_identifies_nobody(name):
    given_one = Pseudonyms(KEY).pseudonym("a.cn", name)
    assert given_one.startswith(NOBODY_PREFIX)
    assert is_nobody(given_one)
    assert (
        given_one
        == Pseudonyms(KEY).pseudonym("a.cn", given_one)
        != Pseudonyms(KEY).pseudonym("a.cn", f"{name}1")
    )


@given(names)
@example("\U000b7af38i\x02?")  # its pseudonym has 6xx, as masked numbers have
def test_a_pseudonym_identifies_somebody_if_the_name_does(name):
    assert is_nobody(Pseudonyms(KEY).pseudonym("a.cn", name)) == is_nobody(name)


@pytest.mark.parametrize("spelling", ["王小明 ", " 王小明", "王小明\n"])
def test_blanks_around_a_name_make_no_other_author(spelling):
    assert Pseudonyms(KEY).pseudonym("a.cn", spelling) == Pseudonyms(KEY).pseudonym("a.cn", "王小明")


@pytest.mark.parametrize("name", ["author-x", "author-ABCDEFGHIJKL", "author-1111111111110"])
def test_a_name_that_only_looks_like_one_is_hidden_too(name):
    assert Pseudonyms(KEY).pseudonym("a.cn", name) != name


def test_a_short_key_is_refused():
    with pytest.raises(ValueError, match="a key of 3 characters is too short: 16 or more"):
        Pseudonyms("abc")
