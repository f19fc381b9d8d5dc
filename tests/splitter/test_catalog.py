from pathlib import Path

import pytest

from splitter.catalog import yamlfile
from splitter.catalog.load import builtin, find_catalog, load_catalog, parse_catalog
from splitter.catalog.names import Kind
from splitter.errors import CatalogError

ROOT = Path(__file__).parents[2]
SOURCE_SITES = [
    "12315.com",
    "12365hn.com",
    "12365ts.net",
    "21315.com.cn",
    "315.e0570.com",
    "315chn.com",
    "315cx.com.cn",
    "315ok.com",
    "315online.com",
    "315rx.com",
    "cca.org.cn",
    "ccn.com.cn",
    "cfqn12315.com",
    "cfqn315.com",
    "cgcr.com.cn",
    "china12315.com.cn",
    "china315.com",
    "chinatt315.org.cn",
    "cjwq.cn",
    "cq315.org",
    "js315ccn.com",
    "nettiger.cn",
    "nfqs.com.cn",
    "qs315.org",
    "sczl315.com",
    "sd315.org.cn",
    "sdq365.com.cn",
    "shzj.gov.cn",
    "sp.chinadaily.com.cn",
    "szs12365.com",
    "315tousu.org",
    "315zj.com",
    "hd315.gov.cn",
    "t.163.com",
    "weibo.com",
]

GOOD = """\
version: 1
name: small
limits: {per_address_per_s: 2, total_per_s: 8}
rules:
  complaint:
    review: div.complaint
    id: "@data-id"
    body: div.body
engines:
  search:
    kind: meta
    url: http://www.example.com/s
    params: {wd: "{query}", pn: "{offset}"}
    paging_params: [pn]
    encoding: gbk
    results:
      hit: div.result
      link: h3 a@href
      title: h3 a
      found: '([\\d,]+) results'
      empty: [nothing found]
sites:
  example.org: {engine: search, rules: complaint, quota: {min: 1, max: 9}}
"""


def problems(text):
    with pytest.raises(CatalogError) as told:
        parse_catalog(text, "s.yaml")
    return str(told.value)


def test_the_catalog_is_the_sources():
    catalog = builtin("paper-2014")
    assert sorted(catalog.sites) == sorted(SOURCE_SITES)
    assert len(catalog.sites) == 35
    microblogs = [site for site in catalog.sites if catalog.kind_of(site) is Kind.MICROBLOG]
    assert microblogs == ["t.163.com", "weibo.com"]


def test_a_good_catalog_is_taken():
    catalog = parse_catalog(GOOD, "s.yaml")
    assert catalog.limits.per_address_per_s == 2.0
    assert catalog.rules_of("example.org").id == "@data-id"
    with pytest.raises(KeyError):
        catalog.engine_of("example.net")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("version: 1\n", "", "s.yaml:1: version: missing"),
        ("version: 1", "version: 2", "s.yaml:1: version: missing, or not known here"),
        ("version: 1", "version: yes", "s.yaml:1: version: must be a whole number; found True"),
        ("name: small", "nam: small", "s.yaml:2: nam: unknown key; did you mean 'name'?"),
        ("name: small", "name: 7", "s.yaml:2: name: 7 is not text; write it in quotes"),
        ("total_per_s: 8", "total_per_s: 0", "s.yaml:3: limits.total_per_s: must be greater than 0"),
        (
            "total_per_s: 8",
            "total_per_s: .inf",
            "s.yaml:3: limits.total_per_s: must be a finite number",
        ),
        (
            "total_per_s: 8",
            "total_per_s: '8'",
            "s.yaml:3: limits.total_per_s: must be a number",
        ),
        ("review: div.complaint", "review: 'div['", "s.yaml:6: rules.complaint.review: 'div['"),
        ("review: div.complaint", "review: ''", "s.yaml:6: rules.complaint.review: ''"),
        ('id: "@data-id"', 'id: "a@"', "s.yaml:7: rules.complaint.id: 'a@' names no attribute"),
        ('id: "@data-id"', 'id: "p >@id"', "s.yaml:7: rules.complaint.id: 'p >'"),
        (
            "    body: div.body\n",
            "    body: div.body\n    next: 'a['\n",
            "s.yaml:9: rules.complaint.next: 'a['",
        ),
        ("    body: div.body\n", "", "s.yaml:5: rules.complaint.body: missing"),
        (
            "body: div.body",
            "bdy: div.body",
            "s.yaml:8: rules.complaint.bdy: unknown key; did you mean 'body'?",
        ),
        ("kind: meta", "kind: mata", "s.yaml:11: engines.search.kind: must be one of 'meta', 'microblog'"),
        (
            "http://www.example.com/s",
            "ftp://a.com/s",
            "s.yaml:12: engines.search.url: 'ftp://a.com/s' is no address of http",
        ),
        (
            "http://www.example.com/s",
            "http:///s",
            "s.yaml:12: engines.search.url: 'http:///s' is no address of http",
        ),
        (
            "http://www.example.com/s",
            "http://[/s",
            "s.yaml:12: engines.search.url: 'http://[/s' is no address of http",
        ),
        ("http://www.example.com/s", "http://a.com/s?a=1", "s.yaml:12: engines.search.url: "),
        ('"{query}"', '"{qury}"', "s.yaml:13: engines.search.params.wd: unknown placeholder {qury}"),
        ('"{query}"', '"{qury}"', "s.yaml:13: engines.search.params: no parameter carries the query"),
        ('"{query}"', '"{query"', "s.yaml:13: engines.search.params.wd: braces of '{query' do not match"),
        ('"{query}"', '"{query!r}"', "s.yaml:13: engines.search.params.wd: unknown placeholder {query!r}"),
        (
            "paging_params: [pn]",
            "paging_params: [np, pn]",
            "s.yaml:14: engines.search.paging_params[0]: no parameter",
        ),
        (
            "paging_params: [pn]",
            "paging_params: [wd, pn]",
            "s.yaml:14: engines.search.paging_params: parameter 'wd' holds",
        ),
        ("    paging_params: [pn]\n", "", "s.yaml:13: engines.search.params.pn: depends on the page"),
        ("encoding: gbk", "encoding: gbq", "s.yaml:15: engines.search.encoding: unknown encoding 'gbq'"),
        ("encoding: gbk", "encoding: utf-16", "s.yaml:15: engines.search.encoding: 'utf-16' cannot be used"),
        ("encoding: gbk", "encoding: base64", "s.yaml:15: engines.search.encoding: unknown encoding"),
        ("encoding: gbk", 'site: "{site}"', "s.yaml:15: engines.search.site: '{site}' lacks {words}"),
        (
            "hit: div.result",
            "hit: 'a:nope'",
            "s.yaml:17: engines.search.results.hit: 'a:nope' is no CSS selector",
        ),
        ("h3 a@href", "h3..a@href", "s.yaml:18: engines.search.results.link: 'h3..a'"),
        ("'([\\d,]+) results'", "'[\\d,]+ results'", "s.yaml:20: engines.search.results.found: "),
        ("'([\\d,]+) results'", "'([\\d,]+ results'", "s.yaml:20: engines.search.results.found: bad regular"),
        (
            "[nothing found]",
            "[ok, '*']",
            "s.yaml:21: engines.search.results.empty[1]: bad regular expression '*'",
        ),
        ("[nothing found]", "['x?']", "s.yaml:21: engines.search.results.empty[0]: 'x?' matches everything"),
        ("[nothing found]", "nothing", "s.yaml:21: engines.search.results.empty: must be a list"),
        (
            "engine: search",
            "engine: serch",
            "s.yaml:23: sites.example.org.engine: there is no 'serch' in engines; did",
        ),
        (
            "rules: complaint,",
            "rules: thread,",
            "s.yaml:23: sites.example.org.rules: there is no 'thread' in rules",
        ),
        (
            "{min: 1, max: 9}",
            "{min: 10, max: 9}",
            "s.yaml:23: sites.example.org.quota: min 10 is above max 9",
        ),
        (
            "quota: {min",
            "budget_s: {min: 5, max: 2}, quota: {min",
            "s.yaml:23: sites.example.org.budget_s: min 5",
        ),
        ("example.org:", "Example.org:", "s.yaml:23: sites.Example.org: 'Example.org' is no domain name"),
        ("example.org:", "localhost:", "s.yaml:23: sites.localhost: 'localhost' is no domain name"),
        ("example.org:", "163:", "s.yaml:23: sites.163: a key must be text; write '163' in quotes"),
        ("rules: complaint,", "", "s.yaml:23: sites.example.org.rules: missing"),
        (
            "quota: {min: 1, max: 9}",
            "pages: 0",
            "s.yaml:23: sites.example.org.pages: must be",
        ),
        ("quota: {min: 1, max: 9}", "pages: 1.5", "s.yaml:23: sites.example.org.pages: "),
        ("quota: {min: 1, max: 9}", "limit: 3", "s.yaml:23: sites.example.org.limit: unknown key"),
        (
            "quota: {min",
            "group: shops, quota: {min",
            "s.yaml:23: sites.example.org.group: must be one of 'reg",
        ),
        (
            "quota: {min",
            "encoding: gbkk, quota: {min",
            "s.yaml:23: sites.example.org.encoding: unknown encoding",
        ),
        (
            "quota: {min",
            "encoding: hex, quota: {min",
            "s.yaml:23: sites.example.org.encoding: unknown encoding",
        ),
        (
            "quota: {min",
            "robots: {obey: true}, quota: {min",
            "s.yaml:23: sites.example.org.robots.reason: missing",
        ),
        (
            "quota: {min",
            "robots: {obey: false, reason: we may}, quota: {min",
            "s.yaml:23: sites.example.org.robots.reason: 'we may' is no reason not to obey",
        ),
        (
            "quota: {min",
            "robots: {obeys: false, reason: we were allowed to}, quota: {min",
            "s.yaml:23: sites.example.org.robots.obeys: unknown key; did you mean 'obey'?",
        ),
        ("name: small", "name: a\nname: b", "s.yaml:3: name: written twice, first in line 2"),
        ("name: small", "name: [a", "s.yaml:3: not readable as YAML"),
        ("name: small", "name: a\x01", "s.yaml:2: not readable as YAML"),
        ("name: small", "name: &a [*a]", "s.yaml:2: not readable as YAML"),
        ("name: small", "name: a\n---\nb: 1", "s.yaml:3: not readable as YAML"),
    ],
)
def test_a_problem_is_told_with_line_and_key(old, new, said):
    assert old in GOOD
    assert said in problems(GOOD.replace(old, new, 1))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a:\n\tb: 1\n", "2: not readable as YAML at column 1: a tab; indent with blanks"),
        ("a: 1\n\tb: 1\n", "2: not readable as YAML at column 1: a tab; indent with blanks"),
        ("version：1\nname: a\n", "1: not readable as YAML at column 8: the Chinese colon ： ends no key"),
        ("a:\n  b：1\n  c: 2\n", "2: not readable as YAML at column 4: the Chinese colon ： ends no key"),
        ("- a：1\n- b：2\nc: 1\n", "1: not readable as YAML at column 4: the Chinese colon ： ends no key"),
        ("a: [1, 2\nb: 3\n", "the bracket [ of line 1 is not closed"),
        ("a: {b: 1\nc: 3\n", "the bracket { of line 1 is not closed"),
        ("a: 1\nb: [1, 2\n", "the bracket [ of line 2 is not closed"),
        ("a: 1\n   b: 2\n", "2: not readable as YAML at column 5: a colon and a blank stand in a value"),
        ("a:\n    b: 1\n  c: 2\n", "3: not readable as YAML at column 3: this line does not stand"),
        ("a:\n  - 1\n b: 2\n", "this line does not stand in the column"),
        ("a: say: so\n", "1: not readable as YAML at column 7: a colon and a blank stand in a value"),
        ('a: "open\nb: 1\n', "the quote that line 1 opens is not closed"),
        ("a: 1\nb: 'open\n", "the quote that line 2 opens is not closed"),
        ('a: "\\q"\n', "begins an escape"),
        ("a: @b\n", "1: not readable as YAML at column 4: a value begins with this character"),
        ("a: `b`\n", "1: not readable as YAML at column 4: a value begins with this character"),
        ("a: %b\n", "1: not readable as YAML at column 4: a value begins with this character"),
        ("a: *b\n", "* refers to an anchor that is not there"),
        ("a: !b c\n", "a value begins with !"),
        ("a: |b\n  c\n", "only a comment can stand behind |"),
        ("a\nb: 1\n", "a colon and a blank stand in a value"),
        ("a: - b\n", "no list entry can stand here"),
        ("a: 1\n---\nb: 2\n", "--- begins a second document"),
        ("{a: 1}: 2\n", "a key must be text"),
        ("a: \x07\n", "1: not readable as YAML: a character that can't be seen"),
    ],
)
def test_what_is_no_yaml_is_explained_with_its_place(text, said):
    with pytest.raises(CatalogError) as caught:
        yamlfile.read(text, "s.yaml")
    assert said in str(caught.value)
    assert str(caught.value).startswith("s.yaml:")


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("syte", "did you mean 'sites'?"),
        ("egnines", "did you mean 'engines'?"),
        ("limit", "did you mean 'limits'?"),
        ("rule", "did you mean 'rules'?"),
        ("nmae", "did you mean 'name'?"),
        ("gods", "docs/sites-yaml.md lists the known ones"),
    ],
)
def test_an_unknown_key_at_the_top_is_compared_with_those_of_the_top(key, said):
    assert f"s.yaml:1: {key}: unknown key; {said}" in problems(f"{key}: 1\n{GOOD}")


def test_every_problem_of_the_shape_is_told_at_once():
    told = problems(GOOD.replace("meta", "mata").replace("rules: complaint,", ""))
    assert [line.split(": ")[1] for line in told.splitlines()[1:]] == [
        "engines.search.kind",
        "sites.example.org.rules",
    ]


def test_every_problem_behind_the_shape_is_told_at_once():
    text = GOOD.replace("engine: search", "engine: serch").replace("div.body", "'div['")
    told = problems(text.replace("'([\\d,]+)", "'[\\d,]+")).splitlines()
    assert told[0] == "s.yaml: 3 problems"
    assert [line.split(": ")[1] for line in told[1:]] == [
        "rules.complaint.body",
        "engines.search.results.found",
        "sites.example.org.engine",
    ]


@pytest.mark.parametrize("text", ["", "- a\n", "just text", "5"])
def test_a_file_of_another_kind_is_told(text):
    assert "s.yaml:1: the file must hold keys and values" in problems(text)


def test_a_catalog_without_sites_is_told():
    text = GOOD[: GOOD.index("sites:")] + "sites: {}\n"
    assert "s.yaml:22: sites: empty" in problems(text)


def test_a_date_is_text_and_merged_keys_are_known():
    text = GOOD.replace("name: small", "name: 2014-05-01")
    text = text.replace("quota: {min: 1, max: 9}}", "quota: {<<: &q {min: 2, max: 4}}}")
    catalog = parse_catalog(text, "s.yaml")
    assert catalog.name == "2014-05-01"
    assert catalog.sites["example.org"].quota.max == 4


def test_catalogs_are_found_by_name_or_file(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("\ufeff" + GOOD, "utf-8")
    assert find_catalog(None, file).name == "small"
    assert find_catalog(str(file), Path("nowhere")).name == "small"
    assert find_catalog("paper-2014", file).name == "paper-2014"
    with pytest.raises(CatalogError, match="paper-2014"):
        builtin("paper-2015")
    with pytest.raises(CatalogError, match=r"nowhere\.yaml: .*built-in catalog"):
        load_catalog(tmp_path / "nowhere.yaml")
    file.write_bytes(b"version: 1\nname: \xb9\xe2\n")
    with pytest.raises(CatalogError, match=r"mine\.yaml:2: not UTF-8"):
        load_catalog(file)
