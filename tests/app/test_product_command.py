import json

import pytest
from sqlalchemy import select
from workbooks import packed, text, workbook

from tasks.store.sql.database import Store
from tasks.store.sql.tables import audit_log, products


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


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "NAME..."),
        (("特仑苏", "光明牛奶", "--keywords", "牛奶"), "belong to one name"),
        (("特仑苏", "--keywords", " ，"), "has no words"),
        (("特仑苏", "--pages", "0"), "--pages"),
        (("特仑苏", "--recrawl", "soon"), "12h, 7d"),
        (("特仑苏", "--db", "mysql://a/b"), "the scheme is none of"),
        (("特仑苏", "--db", "postgresql:/nonsense"), "no scheme"),
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
    assert [p["name"] for p in told["added"]] == ["特仑苏", "光明高钙牛奶", "蒙牛早餐奶"]
    assert told["already"] == ["特仑苏"]
    assert [r["line"] for r in told["refused"]] == [3]
    [ignored] = told["ignored"]
    assert (ignored["column"], ignored["values"], ignored["rows"]) == ("priority", ["x"], [5])
    plain = reviewloop("product", "import", "-", "--db", url, stdin="光明酸奶\n".encode())
    assert plain.exit_code == 0
    assert "added: 光明酸奶" in plain.stdout
    assert reviewloop("product", "import", tmp_path / "nowhere.csv", "--db", url).exit_code == 2


TITLED = workbook(
    ["质量监测商品清单"], ["商品名称", "关键词"], ["荣耀 Magic8", "荣耀、Magic8"], ["特仑苏"], ["12.5"]
)


def test_import_below_a_title_and_what_it_would_do(reviewloop, url, tmp_path):
    reviewloop("product", "add", "特仑苏", "--db", url)
    file = tmp_path / "products.xlsx"
    file.write_bytes(TITLED)
    arguments = ("product", "import", file, "--db", url, "--json")
    tried = [json.loads(reviewloop(*arguments, "--dry-run").stdout) for _ in range(2)]
    done = json.loads(reviewloop(*arguments).stdout)
    assert tried[0] == tried[1] == {**done, "number": None, "dry_run": True}
    assert done["number"] == 2
    assert [
        [(one["line"], one["name"], one["keywords"]) for one in done[key]]
        for key in ("added", "known", "refused")
    ] == [
        [(3, "荣耀 Magic8", ["荣耀", "Magic8"])],
        [(4, "特仑苏", ["蒙牛", "特仑苏"])],
        [(5, "12.5", [])],
    ]
    assert (done["sheet"], done["header_row"], done["columns"]["name"]) == ("Sheet", 2, "商品名称")
    assert len(json.loads(reviewloop("product", "list", "--db", url, "--json").stdout)["products"]) == 2


def test_trying_an_import_makes_no_database(reviewloop, tmp_path):
    path = tmp_path / "new.db"
    told = reviewloop(
        "product", "import", "-", "--dry-run", "--db", f"sqlite:///{path}", stdin="特仑苏\n特仑苏\n".encode()
    )
    assert "1 would be added, 1 there already" in told.stdout
    assert not path.exists()


@pytest.mark.parametrize("command", ["product", "review"])
def test_nothing_is_stored_of_a_workbook_beyond_a_limit(reviewloop, url, tmp_path, command):
    head = f"<row>{text('商品名称')}{text('评论内容')}</row>"
    rows = "".join(
        f"<row>{text('蒙牛牛奶' + 'ABCDEFGHIJ'[n % 10] * 2)}{text(f'第{n}次')}</row>" for n in range(1100)
    )
    file = tmp_path / "hostile.xlsx"
    file.write_bytes(packed(head + rows + f"<row>{text('x' * 40_000)}</row>"))
    reviewloop("product", "add", "特仑苏", "--db", url)
    told = reviewloop(command, "import", file, "--db", url)
    assert (told.exit_code, told.stdout) == (2, "")
    assert told.stderr.splitlines()[-1] == (
        f"reviewloop: {file}: sheet 清单, row 1,102: has more than 32,767 characters in a cell"
    )
    assert len(json.loads(reviewloop("product", "list", "--db", url, "--json").stdout)["products"]) == 1
    assert json.loads(reviewloop("verify", "--db", url, "--json").stdout)["counts"]["reviews"] == 0


@pytest.mark.parametrize("text", ["", "name,keywords\n", "\n\n"])
def test_a_file_without_products_is_no_success(reviewloop, url, text):
    """`reviewloop init` makes such a file, and who forgot to fill it in is told."""
    result = reviewloop("product", "import", "-", "--db", url, stdin=text.encode())
    assert (result.exit_code, result.stdout) == (2, "")
    assert "holds no product: write one name a line" in result.stderr


def test_looking_begins_no_database(reviewloop, tmp_path):
    path = tmp_path / "typo.db"
    for command in (("status",), ("verify",), ("product", "list"), ("failed", "list"), ("nodes", "list")):
        result = reviewloop(*command, "--db", f"sqlite:///{path}")
        assert result.exit_code == 2
        assert "there is no database" in result.stderr
        assert not result.stdout
    assert not path.exists()


def test_remove_and_edit(reviewloop, url):
    reviewloop("product", "add", "特仑苏", "光明高钙牛奶", "--db", url)
    dry = json.loads(reviewloop("product", "remove", "特仑苏", "--dry-run", "--db", url, "--json").stdout)
    [one] = dry["removed"]
    assert (one["name"], one["cancelled"], one["reviews"], one["was_looked_for"]) == ("特仑苏", 0, 0, True)
    unknown = reviewloop("product", "remove", "特仑苏", "没有", "--db", url)
    assert (unknown.exit_code, "there is no product '没有'" in unknown.stderr) == (2, True)
    done = json.loads(reviewloop("product", "remove", "特仑苏", "--db", url, "--json").stdout)
    assert done["removed"][0]["was_looked_for"]
    assert "特仑苏: was removed before" in reviewloop("product", "remove", "特仑苏", "--db", url).stdout
    edited = reviewloop(
        "product", "edit", "光明高钙牛奶", "--keywords", "光明，牛奶", "--recrawl", "7d", "--db", url
    )  # fmt: skip
    assert (edited.exit_code, "crawled again from the start" in edited.stdout) == (0, True)
    listed = json.loads(reviewloop("product", "list", "--db", url, "--json").stdout)["products"]
    assert [(p["name"], p["keywords"], p["recrawl_every_s"]) for p in listed] == [
        ("特仑苏", ["蒙牛", "特仑苏"], None),
        ("光明高钙牛奶", ["光明", "牛奶"], 604800),
    ]
    assert [p["looked_for"] for p in listed] == [False, True]
    assert "paused" in reviewloop("product", "list", "--db", url).stdout
    nothing = reviewloop("product", "edit", "光明高钙牛奶", "--db", url)
    assert (nothing.exit_code, "--priority" in nothing.stderr) == (2, True)


@pytest.mark.parametrize(
    ("name", "again"),
    [
        ("Dyson Airwrap i.d.", "dyson airwrap I.D."),
        ("海底捞火锅", "海底捞 火锅"),
        ("特仑苏", "特仑苏🥛"),
        ("iPhone17", "ｉＰｈｏｎｅ　１７"),
    ],
)
def test_names_that_differ_only_by_case_blanks_width_or_emoji_are_one_product(reviewloop, url, name, again):
    reviewloop("product", "add", name, "--db", url)
    second = json.loads(reviewloop("product", "add", again, "--db", url, "--json").stdout)
    assert (second["added"], second["already"]) == ([], [name])
    both = json.loads(reviewloop("product", "add", f"{again}壳", f"{name}壳", "--db", url, "--json").stdout)
    assert ([one["name"] for one in both["added"]], both["already"]) == ([f"{again}壳"], [f"{again}壳"])
    assert reviewloop("product", "remove", again, "--db", url).exit_code == 0


def test_a_renamed_product_keeps_everything(reviewloop, url):
    reviewloop("product", "add", "特仑苏", "光明牛奶", "--db", url)
    reviewloop("review", "import", "-", "--product", "特仑苏", "--site", "jd.com", "--db", url,
               stdin="body\n结块了，客服不理\n".encode())  # fmt: skip
    renamed = json.loads(
        reviewloop("product", "edit", "特仑苏", "--name", "蒙牛特仑苏", "--db", url, "--json").stdout
    )
    assert (renamed["name"], renamed["reviews"], renamed["cancelled"]) == ("蒙牛特仑苏", 1, 0)
    assert reviewloop("product", "edit", "蒙牛特仑苏", "--name", "蒙牛 特仑苏", "--db", url).exit_code == 0
    taken = reviewloop("product", "edit", "光明牛奶", "--name", "蒙牛特仑苏", "--db", url)
    assert (taken.exit_code, "there is a product '蒙牛 特仑苏' already" in taken.stderr) == (2, True)
    assert reviewloop("product", "edit", "光明牛奶", "--name", "250ml", "--db", url).exit_code == 2
    store = Store.open(url)
    with store.read() as tx:
        rows = tx.engine_connection.execute(
            select(products.c.name, products.c.id).order_by(products.c.id)
        ).all()
        noted = tx.engine_connection.execute(
            select(audit_log.c.subject, audit_log.c.detail).order_by(audit_log.c.id)
        ).all()
    store.close()
    assert rows == [("蒙牛 特仑苏", 1), ("光明牛奶", 2)]
    assert noted[-2:] == [
        ("特仑苏", {"name": "蒙牛特仑苏", "cancelled": 0}),
        ("蒙牛特仑苏", {"name": "蒙牛 特仑苏", "cancelled": 0}),
    ]
    assert reviewloop("verify", "--db", url).exit_code == 0


def test_a_product_has_a_category(reviewloop, url):
    added = json.loads(reviewloop("product", "add", "特仑苏", "无名氏", "--db", url, "--json").stdout)
    assert [one["category"] for one in added["added"]] == ["food", None]
    shown = reviewloop("product", "add", "小米SU7", "不知道", "--db", url).stdout
    assert "小米&SU7 (car)" in shown
    assert "category unknown" in shown
    edited = reviewloop(
        "product", "edit", "无名氏", "--name", "海底捞火锅", "--category", "restaurant", "--db", url
    )  # fmt: skip
    assert (edited.exit_code, "crawled again from the start" in edited.stdout) == (0, True)
    listed = json.loads(reviewloop("product", "list", "--db", url, "--json").stdout)["products"]
    assert [one["category"] for one in listed] == ["food", "restaurant", "car", None]
    assert "海底捞" in listed[1]["keywords"], "it is crawled again by its new name"
    assert "restaurant" in reviewloop("product", "list", "--db", url).stdout
    assert reviewloop("product", "edit", "无名氏", "--category", "fish", "--db", url).exit_code == 2


def test_a_name_that_is_only_a_brand_is_taken_with_a_note(reviewloop, url):
    added = reviewloop("product", "add", "拼多多", "京东物流", "12306", "--db", url, "--json")
    assert added.exit_code == 0
    noted = [line.split(":")[0] for line in added.stderr.splitlines() if "only a brand or a platform" in line]
    assert noted == ["拼多多", "12306"]


def test_remove_with_reviews_asks_or_needs_yes(reviewloop, url):
    reviewloop("product", "add", "特仑苏", "--db", url)
    reviewloop("review", "import", "-", "--product", "特仑苏", "--site", "jd.com", "--db", url,
               stdin="body\n结块了，客服不理\n".encode())  # fmt: skip
    asked = reviewloop("product", "remove", "特仑苏", "--delete-reviews", "--db", url)
    assert (asked.exit_code, "Delete all reviews of 特仑苏 (1)" in asked.stderr) == (2, True)
    dry = reviewloop("product", "remove", "特仑苏", "--delete-reviews", "--dry-run", "--db", url)
    assert "would be deleted, less those of other products: 1" in dry.stdout
    sure = ("product", "remove", "特仑苏", "--delete-reviews", "--yes", "--db", url, "--json")
    [told] = json.loads(reviewloop(*sure).stdout)["removed"]
    assert (told["reviews"], told["deleted"]) == (1, 1)
    assert reviewloop("export", "reviews", "--db", url).stdout.count("\n") == 1
    assert reviewloop("verify", "--db", url).exit_code == 0


def test_an_import_is_undone_by_its_number(reviewloop, url, tmp_path):
    file = tmp_path / "products.txt"
    file.write_text("光明高钙牛奶\n特仑苏\n")
    reviewloop("product", "add", "特仑苏", "--db", url)
    command = ("product", "import", "--undo", "2", "--db", url, "--json")
    assert json.loads(reviewloop("product", "import", file, "--db", url, "--json").stdout)["number"] == 2
    tried, done = (
        json.loads(reviewloop(*command, "--dry-run").stdout),
        json.loads(reviewloop(*command).stdout),
    )
    assert tried == {**done, "dry_run": True}
    assert (done["products_removed"], done["stays"], done["file"]) == (1, [], str(file))
    assert reviewloop(*command).exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "--undo N"),
        (("--undo", "7"), "no import 7; there is 1"),
        (("--undo", "0"), "--undo"),
        (("--undo", "1", "--column", "B"), "column"),
        (("FILE", "--undo", "1"), "file"),
        (("FILE", "--as-list", "--column", "B"), "--as-list"),
    ],
)
def test_wrong_ways_to_undo(reviewloop, url, tmp_path, arguments, said):
    file = tmp_path / "products.txt"
    file.write_text("特仑苏\n")
    reviewloop("product", "import", file, "--db", url)
    given = [str(file) if one == "FILE" else one for one in arguments]
    wrong = reviewloop("product", "import", *given, "--db", url)
    assert wrong.exit_code == 2
    assert said in wrong.stderr


@pytest.fixture
def mixed(reviewloop, url, tmp_path):
    """Add an import of products of several categories, and one more."""
    names = "老干妈\n雀巢怡养中老年奶粉\n特仑苏\n奇多妙脆角\n"
    assert reviewloop("product", "import", "-", "--db", url, stdin=names.encode()).exit_code == 0
    assert reviewloop("product", "add", "海底捞", "--db", url).exit_code == 0

    def edit(*arguments):
        result = reviewloop("product", "edit", *arguments, "--db", url, "--sites", "today", "--json")
        return json.loads(result.stdout) if result.stdout else result

    return edit


@pytest.mark.parametrize(
    ("conditions", "names"),
    [
        (["category=unknown"], ["奇多妙脆角"]),
        (["category=food"], ["老干妈", "雀巢怡养中老年奶粉", "特仑苏"]),
        (["category=food", "doubt=one_keyword"], ["老干妈"]),
        (["doubt=many_keywords"], ["雀巢怡养中老年奶粉"]),
        (["import=2"], ["海底捞"]),
        (["import=9"], []),
        (["keyword=奶粉"], ["雀巢怡养中老年奶粉"]),
        (["name=仑"], ["特仑苏"]),
        (["priority=0", "import=2"], ["海底捞"]),
        (["group=shop"], []),
    ],
)
def test_products_are_chosen_by_what_they_have(mixed, conditions, names):
    where = [word for one in conditions for word in ("--where", one)]
    tried = mixed(*where, "--priority", "7", "--dry-run")
    assert [one["name"] for one in tried["changed"]] == names
    assert mixed(*where, "--priority", "7") == {**tried, "dry_run": False}
    if "priority=0" not in conditions:
        assert mixed(*where, "--priority", "7")["unchanged"] == names


def test_many_products_get_a_category_sites_and_keywords(mixed, reviewloop, url):
    done = mixed("--where", "category=unknown", "--category", "appliance", "--group", "complaints")
    [one] = done["changed"]
    assert (one["category"], "12315.com" in one["sites"]) == ("appliance", True)
    assert mixed("--where", "group=complaints", "--all-sites")["changed"][0]["sites"] is None
    done = mixed("--where", "category=food", "--add-keyword", "正品", "--drop-keyword", "中老年")
    assert {tuple(one["keywords"]) for one in done["changed"]} == {
        ("老干妈", "正品"),
        ("雀巢", "怡养", "奶粉", "正品"),
        ("蒙牛", "特仑苏", "正品"),
    }
    refused = reviewloop("product", "edit", "海底捞", "特仑苏", "--drop-keyword", "海底捞", "--db", url)
    assert (refused.exit_code, "海底捞 would have no keyword left" in refused.stderr) == (2, True)
    assert "0 changed, 1 are so already, 1 refused" in refused.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--where", "category", "--priority", "1"), "'category' is no condition"),
        (("--where", "category=", "--priority", "1"), "is no condition"),
        (("--where", "categry=food", "--priority", "1"), "no field 'categry'"),
        (("--where", "category=fish", "--priority", "1"), "there are unknown, food"),
        (("--where", "priority=high", "--priority", "1"), "is no whole number"),
        (("--where", "name=a", "--where", "name=b", "--priority", "1"), "given twice"),
        (("--where", "name=a"), "say what to change"),
        (("--where", "name=a", "--name", "b"), "--name belongs to one product"),
        (("--where", "name=a", "--keywords", "b"), "belong to one name"),
        (("--where", "name=a", "特仑苏", "--priority", "1"), "not both"),
        (("--priority", "1"), "name the products to change"),
        (("特仑苏", "--keywords", "a", "--add-keyword", "b"), "can't be used with"),
    ],
)
def test_a_wrong_choice_of_products_is_refused(reviewloop, url, arguments, said):
    refused = reviewloop("product", "edit", *arguments, "--db", url)
    assert (refused.exit_code, said in refused.stderr) == (2, True), refused.stderr


def test_an_import_of_many_lists_the_doubtful_ones(reviewloop, url):
    names = "".join(f"蒙牛酸奶{n}号\n" for n in range(30)) + "老干妈\n"
    told = reviewloop("product", "import", "-", "--db", url, stdin=names.encode()).stdout
    assert [line for line in told.splitlines() if line.startswith("added")] == [
        "added: 老干妈 -> 老干妈 (food): one keyword: may find other things"
    ]
    assert "1 of the 31 is doubtful" in told
