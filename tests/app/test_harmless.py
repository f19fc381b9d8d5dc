"""What strangers write steers no terminal and makes no line of a log."""

from __future__ import annotations

import io
import logging

import pytest

from app.files.harmless import HarmlessFormatter, one_line, shown
from app.run.setting_fields import Settings
from splitter.errors import InputError
from tasks.store.sql.database import Store


@pytest.mark.parametrize(
    "harmful",
    [
        "\x1b[2J",
        "\x07",
        "\r",
        "\x9b31m",
        "\x85",
        "\x7f",
        "\u202e",
        "\u2066",
        "\u200f",
        "\u2028",
        "\u2029",
        "\ud800",
    ],
)
def test_nothing_steers_a_terminal(harmful):
    assert harmful[0] not in shown(f"光明{harmful}牛奶")
    assert shown(f"光明{harmful}牛奶").startswith("光明")


def test_lines_stay_in_messages_and_not_in_logs():
    assert shown("光明\n牛奶\tx") == "光明\n牛奶\tx"
    assert one_line("光明\n牛奶\tx") == "光明\\n牛奶\\tx"


def test_a_log_record_is_one_line_and_its_traceback_is_harmless():
    out = io.StringIO()
    logger = logging.Logger("test")
    handler = logging.StreamHandler(out)
    handler.setFormatter(HarmlessFormatter("%(levelname)s %(message)s"))
    logger.addHandler(handler)
    logger.warning("page says %s", "x\nERROR all is lost \x1b[31m")
    assert out.getvalue() == "WARNING page says x\\nERROR all is lost \N{REPLACEMENT CHARACTER}[31m\n"
    try:
        raise ValueError("\x1b]0;owned\x07")
    except ValueError:
        logger.exception("broken")
    assert "\x1b" not in out.getvalue()
    assert "Traceback" in out.getvalue()


def test_settings_show_no_password():
    secrets = {
        "database_url": "postgresql://u:one@h/n",
        "redis_url": "redis://:two@h/0",
        "proxy": "http://u:three@h:1",
        "secret_key": "four-and-more-characters",
        "pseudonym_key": "five-and-more-characters",
    }
    said = repr(Settings(**secrets))
    assert not any(word in said for word in ("one@", "two@", "three@", "four", "five"))


def test_a_database_is_its_owners_alone(tmp_path):
    store = Store.open(f"sqlite:///{tmp_path}/reviewloop.db")
    with store.begin():
        pass
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    store.close()
    assert modes
    assert set(modes.values()) == {0o600}


def test_a_database_address_that_cant_be_read_shows_no_password():
    with pytest.raises(InputError) as caught:
        Store.open("postgresql:/u:secret@host/name")
    assert "secret" not in str(caught.value)
    assert "write sqlite:///FILE or postgresql://USER:PASSWORD@HOST" in str(caught.value)
