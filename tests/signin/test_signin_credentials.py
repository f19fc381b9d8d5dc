"""Credentials come from variables that no two sites share, and are never shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.signin.credentials import Credentials, Part, variable_of
from tasks.signin.errors import MissingCredential

names = st.from_regex(
    r"[a-z0-9]([a-z0-9-]{0,6}[a-z0-9])?(\.[a-z]([a-z0-9-]{0,6}[a-z0-9])?){0,2}", fullmatch=True
)


@pytest.mark.parametrize(
    ("name", "part", "variable"),
    [
        ("12315.com", Part.USER, "REVIEWLOOP_LOGIN_12315_COM_USER"),
        ("my-site.com.cn", Part.PASSWORD, "REVIEWLOOP_LOGIN_MY__SITE_COM_CN_PASSWORD"),
        ("weibo", Part.CLIENT_ID, "REVIEWLOOP_LOGIN_WEIBO_CLIENT_ID"),
    ],
)
def test_the_variable_of_a_site(name, part, variable):
    assert variable_of(name, part) == variable


@given(names, st.sampled_from(list(Part)), names, st.sampled_from(list(Part)))
def test_no_two_sites_share_a_variable(one, part, other, other_part):
    same = variable_of(one, part) == variable_of(other, other_part)
    assert same == ((one, part) == (other, other_part))


def test_a_missing_one_is_named_and_none_is_shown():
    credentials = Credentials("a.com", {"REVIEWLOOP_LOGIN_A_COM_USER": "王小明", "X": "hidden"})
    assert credentials.get(Part.USER) == "王小明"
    with pytest.raises(MissingCredential, match="REVIEWLOOP_LOGIN_A_COM_PASSWORD is not set"):
        credentials.get(Part.PASSWORD)
    assert "王小明" not in f"{credentials!r} {credentials}"
