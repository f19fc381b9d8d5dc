"""`reviewloop review classify`: one object a line, in the order of the file."""

import json

import pytest
from click.testing import CliRunner

from app.cli.main import cli

LINES = [
    {"text": "喝到一半发现有黑色颗粒，太恶心了"},
    {"text": "特仑苏送来全漏了，差评", "product": "特仑苏", "rating": 1},
    {"text": "蒙牛的酸奶味道不好", "product": "特仑苏"},
    {"text": "油耗太高，一百公里十五个油", "product": "丰田卡罗拉"},
    {"text": "The bottle leaks and smells bad"},
    {"text": ""},
]


def run(*args, lines=LINES):
    text = "\n".join(one if isinstance(one, str) else json.dumps(one, ensure_ascii=False) for one in lines)
    return CliRunner().invoke(cli, ["review", "classify", "-", *args], input=text)


def test_one_object_a_line_in_order():
    done = run("--json")
    assert done.exit_code == 0
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [list(one) for one in found] == [["voice", "about", "themes"]] * len(LINES)
    assert [one["about"] for one in found] == [None, True, False, False, None, None]
    assert found[0]["themes"] == [
        {"id": "foreign_matter", "sentiment": -1, "quote": "喝到一半发现有黑色颗粒"}
    ]
    assert "packaging_damage" in [one["id"] for one in found[1]["themes"]]
    assert [one["id"] for one in found[3]["themes"]] == ["fuel"]  # the name suggests a car
    assert found[4] == {"voice": None, "about": None, "themes": []}
    assert all(
        theme["quote"] in LINES[row]["text"] for row, one in enumerate(found) for theme in one["themes"]
    )


def test_the_category_that_is_named():
    done = run("--json", "--category", "restaurant", lines=[{"text": "排队两个小时，服务员态度很差"}])
    (found,) = map(json.loads, done.stdout.splitlines())
    assert {"service_wait_time", "service_waiters_attitude"} <= {one["id"] for one in found["themes"]}


def test_for_people():
    done = run()
    assert done.exit_code == 0
    assert "(-1): 喝到一半发现有黑色颗粒" in done.stdout
    assert "1 text was not read for themes" in done.stderr


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("[1]", "standard input:2: "),
        ("nonsense", "standard input:2: "),
        ('{"txt": "a"}', "standard input:2: text: "),
        ('{"text": 1}', "standard input:2: text: "),
        ('{"text": "a", "rating": 9}', "standard input:2: rating: "),
        ('{"text": "a", "rating": "5"}', "standard input:2: rating"),
        ('{"text": "a", "product": 5}', "standard input:2: product: "),
    ],
)
def test_a_wrong_line_is_named(line, problem):
    done = run("--json", lines=[LINES[0], line])
    assert done.exit_code == 2
    assert problem in done.stderr
