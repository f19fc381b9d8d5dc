import json

import pytest
from click.testing import CliRunner

from app.cli.main import cli
from splitter.lexicon import data


def run(*arguments, stdin=None, catalog="paper-2014"):
    return CliRunner(env={"REVIEWLOOP_SITES": catalog}).invoke(cli, ["split", *arguments], input=stdin)


def test_a_refused_name_does_not_stop_the_batch():
    result = run("特仑苏", "", "包邮 250ml", "长" * 201, "蒙牛早餐奶", "--site", "cca.org.cn", "--json")
    assert result.exit_code == 2
    assert [json.loads(line)["product"] for line in result.stdout.splitlines()] == ["特仑苏", "蒙牛早餐奶"]
    empty, nothing_left, too_long = result.stderr.splitlines()
    assert "empty" in empty
    assert "--keywords" in nothing_left
    assert "201 characters" in too_long


def test_names_from_standard_input_and_a_file(tmp_path):
    file = tmp_path / "names.txt"
    file.write_text("\ufeff光明牛奶\n\n伊利\r\n", "utf-8")
    result = run("-", "--file", str(file), "--site", "cca.org.cn", "--json", stdin="特仑苏\n")
    names = [json.loads(line)["product"] for line in result.stdout.splitlines()]
    assert names == ["特仑苏", "光明牛奶", "伊利"]


def test_given_keywords_and_aliases():
    result = run(
        "雀巢怡养", "--keywords", "雀巢，怡养 奶粉", "--alias", "特仑苏", "--site", "cca.org.cn", "--json"
    )
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line["keywords"] for line in lines] == [["雀巢", "怡养 奶粉"], ["蒙牛", "特仑苏"]]
    assert {line["product"] for line in lines} == {"雀巢怡养"}


def test_the_catalog_of_the_working_folder_is_used(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sites.yaml").write_text("version: 7\n", "utf-8")
    result = run("特仑苏", catalog="")
    assert result.exit_code == 2
    assert "sites.yaml:1: sites: missing" in result.stderr
    (tmp_path / "sites.yaml").unlink()
    assert run("特仑苏", "--site", "cca.org.cn", catalog="").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "no product name"),
        (("甲醇汽油", "乙醇汽油", "--keywords", "汽油"), "one name"),
        (("甲醇汽油", "乙醇汽油", "--alias", "汽油"), "one name"),
        (("特仑苏", "--keywords", " , "), "has no words"),
        (("特仑苏", "--site", "example.com"), "there is no site 'example.com'"),
        (("特仑苏", "--sites", "nowhere.yaml"), "nowhere.yaml"),
    ],
)
def test_wrong_input_is_told(arguments, said):
    result = run(*arguments)
    assert result.exit_code == 2
    assert said in result.stderr
    assert not result.stdout


def test_a_name_is_searched_at_the_sites_of_its_category():
    def asked(*arguments):
        result = run(*arguments, "--no-paging", "--json", catalog="today")
        assert result.exit_code == 0, result.output
        return {json.loads(line)["site"] for line in result.stdout.splitlines()}

    game = asked("王者荣耀")
    assert "apps.apple.com" in game
    unknown = asked("无名氏")
    assert "apps.apple.com" not in unknown
    assert "12365auto.com" not in unknown
    assert unknown < game
    assert "12365auto.com" in asked("无名氏", "--category", "car")
    assert asked("无名氏", "--site", "qctsw.com") == {"qctsw.com"}


@pytest.mark.parametrize(
    ("arguments", "category"),
    [(("王者荣耀",), "app"), (("无名氏",), None), (("无名氏", "--category", "car"), "car")],
)
def test_the_category_of_a_name_is_shown(arguments, category):
    explained = json.loads(run(*arguments, "--explain", "--json").stdout)
    assert explained["category"] == category
    assert f"({category or 'category unknown'}" in run(*arguments, "--site", "cca.org.cn").stdout


def test_a_catalog_without_a_site_for_a_category_is_told(tmp_path):
    catalog = tmp_path / "cars.yaml"
    text = data("paper-2014.yaml")
    line = next(one for one in text.splitlines() if one.startswith("  cca.org.cn:"))
    head, _, rest = text.partition("sites:\n")
    catalog.write_text(f"{head}sites:\n{line.replace('{', '{categories: [car], ', 1)}\n", "utf-8")
    assert rest
    assert "no site" in run("光明高钙牛奶", catalog=str(catalog)).stdout
    assert "cca.org.cn" in run("小米SU7", catalog=str(catalog)).stdout
