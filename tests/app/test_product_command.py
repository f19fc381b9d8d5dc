import json

import pytest


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path / 'reviews.db'}"


def test_add_tells_added_already_and_refused(reviewloop, url):
    first = reviewloop("product", "add", "特仑苏", "", "特仑苏", "光明高钙牛奶", "--db", url, "--json")
    assert first.exit_code == 2
    told = json.loads(first.stdout)
    assert [(p["name"], p["keywords"]) for p in told["added"]] == [
        ("特仑苏", ["蒙牛", "特仑苏"]),
        ("光明高钙牛奶", ["光明", "高钙", "牛奶"]),
    ]
    assert told["already"] == ["特仑苏"]
    assert "empty" in told["refused"][0]["why"]
    assert "refused: the product name is empty" in first.stderr
    assert reviewloop("product", "add", "特仑苏", "--db", url).exit_code == 0


def test_add_for_people(reviewloop, url):
    result = reviewloop(
        "product", "add", "雀巢怡养", "--keywords", "雀巢，怡养", "--alias", "特仑苏", "--recrawl", "7d", "--db", url
    )  # fmt: skip
    assert result.stdout.splitlines() == [
        "added: 雀巢怡养 -> 雀巢&怡养",
        "1 added, 0 there already, 0 refused",
    ]
    [listed] = json.loads(reviewloop("product", "list", "--db", url, "--json").stdout)["products"]
    assert listed["recrawl_every_s"] == 604800
    assert listed["aliases"] == ["特仑苏"]
    assert "雀巢&怡养" in reviewloop("product", "list", "--db", url).stdout
    [due] = json.loads(reviewloop("schedule", "list", "--db", url, "--json").stdout)["recrawls"]
    assert (due["product"], due["every_s"]) == ("雀巢怡养", 604800)
    assert "雀巢怡养" in reviewloop("schedule", "list", "--db", url).stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "NAME..."),
        (("特仑苏", "光明牛奶", "--keywords", "牛奶"), "belong to one name"),
        (("特仑苏", "--keywords", " ，"), "holds no word"),
        (("特仑苏", "--pages", "0"), "--pages"),
        (("特仑苏", "--recrawl", "soon"), "12h, 7d"),
        (("特仑苏", "--db", "mysql://a/b"), "not supported"),
        (("特仑苏", "--db", "nonsense"), "cannot be read"),
    ],
)
def test_wrong_options(reviewloop, url, arguments, said):
    result = reviewloop("product", "add", "--db", url, *arguments)
    assert result.exit_code == 2
    assert said in result.stderr


def test_import(reviewloop, url, tmp_path):
    file = tmp_path / "products.csv"
    file.write_bytes(
        "name,priority\n特仑苏,5\n250ml,\n特仑苏,1\n光明高钙牛奶,x\n蒙牛早餐奶,\n".encode("gb18030")
    )
    result = reviewloop("product", "import", file, "--db", url, "--json")
    assert result.exit_code == 2
    told = json.loads(result.stdout)
    assert [p["name"] for p in told["added"]] == ["特仑苏", "蒙牛早餐奶"]
    assert told["already"] == ["特仑苏"]
    assert [r["line"] for r in told["refused"]] == [3, 5]
    assert "refused: line 5: priority 'x'" in result.stderr
    plain = reviewloop("product", "import", "-", "--db", url, stdin="光明高钙牛奶\n".encode())
    assert plain.exit_code == 0
    assert "added: 光明高钙牛奶" in plain.stdout
    assert reviewloop("product", "import", tmp_path / "nowhere.csv", "--db", url).exit_code == 2


def test_a_long_import_is_told_in_short(reviewloop, url):
    names = "".join(
        f"蒙牛{'甲乙丙丁戊己庚辛壬癸'[n // 10]}{'天地玄黄宇宙洪荒日月'[n % 10]}牛奶\n" for n in range(100)
    )
    result = reviewloop("product", "import", "-", "--db", url, stdin=names.encode())
    assert "... and 80 more" in result.stdout
    assert "100 added" in result.stdout
    again = reviewloop("product", "import", "-", "--db", url, stdin=names.encode())
    assert "100 there already" in again.stdout


def test_looking_begins_no_database(reviewloop, tmp_path):
    path = tmp_path / "typo.db"
    for command in (("status",), ("verify",), ("product", "list"), ("failed", "list"), ("nodes", "list")):
        result = reviewloop(*command, "--db", f"sqlite:///{path}")
        assert result.exit_code == 2
        assert "there is no database" in result.stderr
        assert not result.stdout
    assert not path.exists()
