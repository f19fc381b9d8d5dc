"""What `bench keywords` counts, and that the chooser holds what it reached."""

from pathlib import Path
from zipfile import ZipFile

import pytest

from research.bench.keywords import ALL, PLAIN, ours, peers
from research.tools.pagetruth import SAMPLES
from research.tools.titles import Score, Span, Title, conll, dairy, found_whole, scored, title_of
from research.tools.today import Name, faults, names, of_today
from research.training.keyword_reviews import Asking, Collection
from research.training.public_titles import BY_MODEL, BY_PEOPLE, SAMPLE, Marked, public_titles
from research.training.train_joins import pairs
from research.training.train_joins import train as train_joins
from research.training.train_keywords import examples, halves, train, written
from research.training.train_title_words import marks_of_words
from research.training.train_title_words import written as written_words
from splitter.keyword_classifier import parse_weights
from splitter.title_words import parse_title_words

SHARED = Path(__file__).parents[4] / "shared" / "data"
TITLE = Title("光明牛奶,轻薄P30 光明", (Span(0, 2, "brand"), Span(2, 4, "product"), Span(7, 10, "model")))


def counted(*words):
    score = Score()
    score.add(TITLE, words)
    return score


def test_a_keyword_is_right_inside_a_gold_word():
    assert (counted("光明").right, counted("牛").right, counted("p３０").right) == (1, 1, 1)
    assert (counted("明牛").right, counted("光明牛奶").right, counted("轻薄").right) == (0, 0, 0)
    added = counted("蒙牛")
    assert (added.keywords, added.right, added.chosen) == (0, 0, 0)


def test_words_and_characters_are_counted():
    score = counted("光明", "牛", "轻薄")
    assert (score.keywords, score.right) == (3, 2)
    assert score.found == {"brand": 1, "product": 1, "model": 0}
    assert (score.chosen, score.wanted, score.both) == (7, 7, 3)  # 光明 stands there twice, once gold
    figures = score.figures()
    assert (figures["precision"], figures["recall"], figures["f1"]) == (0.667, 0.667, 0.667)


def test_gold_words_are_read_from_labels(tmp_path):
    file = tmp_path / "titles.conll"
    file.write_text("光 B-HPPX\n明 I-HPPX\n奶 B-4\n白 B-16\nP B-38\n3 I-38\n\n红 O\n", "utf-8")
    first, second = conll(file)
    assert first == Title(
        "光明奶白P3", (Span(0, 2, "brand"), Span(2, 3, "product"), Span(4, 6, "model")), ((3, 4),)
    )
    assert second == Title("红", ())


def test_queries_are_asked_of_reviews():
    reviews = Collection(("光明 牛奶 好", "牛奶", "蒙牛 牛奶", "好"), {"光明高钙牛奶": frozenset({0, 1})})
    asking = Asking(reviews)
    every = asking.ask(lambda name: ("光明", "高钙", "牛奶"))
    assert (every.keywords, every.right, every.others, every.nothing) == (3, 0, 0, 1)
    relaxed = asking.relaxed_to_a_hit(lambda name: ("光明", "高钙", "牛奶"))
    assert (relaxed.keywords, relaxed.right, relaxed.others, relaxed.nothing) == (2, 0.5, 0, 0)
    product = asking.relaxed(lambda name: ("高钙", "牛奶"), 1)
    assert (product.right, product.others) == (1, 0.5)


def test_training_finds_what_tells():
    titles = [
        Title(f"轻薄{first}{second}跑鞋", (Span(4, 6, "product"),))
        for first in "红黄蓝"
        for second in "高低宽"
    ]
    weights = train(examples(titles))
    assert weights["word 跑鞋"][1] > 0 > weights["last 薄"][1]
    assert train(examples(titles)) == weights
    assert parse_weights(written(weights, 9)).keys() == weights.keys()


def test_a_gold_word_is_found_whole_by_all_of_its_characters():
    assert found_whole([TITLE], lambda _: ["光明", "牛奶"]) == pytest.approx(2 / 3)
    assert found_whole([TITLE], lambda _: ["光明", "牛", "轻薄P30"]) == pytest.approx(1 / 3)


def test_joins_are_learned_from_marked_words():
    titles = [Title("东菱,吐司机", (Span(3, 6, "product"),)), Title("吐司机", (Span(1, 3, "product"),))]
    assert list(pairs(titles)) == [("吐", "司机", True), ("吐", "司机", False)]
    weights = train_joins([(["head 鞋 1"], True)] * 4 + [(["head 色 1"], False)] * 4)
    assert weights["head 鞋 1"] > 0 > weights["head 色 1"]


def test_what_is_wrong_with_keywords_of_a_name():
    made = Name("光明高钙牛奶", ("光明", "高钙", "牛奶"), frozenset({"光明", "牛奶"}), frozenset())
    assert faults(made) == []
    cut = Name("光明高钙牛奶", ("光明", "高钙牛奶"), frozenset({"蒙牛"}), frozenset())
    assert faults(cut) == ["蒙牛", "高钙", "牛奶"]


def test_names_of_today_are_right():
    table = SAMPLES / "today.tsv"
    assert names(table)[0].text == "苹果iPhone 15 Pro Max"
    assert of_today(table) == {"names": 20, "right": 20}
    shared = SHARED / "products" / "names-of-today.tsv"
    if shared.is_file():
        assert of_today(shared) == {"names": 20, "right": 20}


def test_ours_identify_products_better_than_all_of_jiebas_words_in_the_samples():
    titles = dairy(SAMPLES / "titles.jsonl")
    others = peers()
    mine = scored(titles, ours)
    assert (mine["f1"] >= 0.7, mine["recall_brand"] >= 0.95) == (True, True)
    for peer in (ALL, PLAIN, "tfidf_5"):
        assert mine["f1"] > scored(titles, others[peer])["f1"], peer


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared data is not beside the repository")
def test_ours_identify_products_better_than_all_of_jiebas_words():
    _, held = halves(SHARED)
    others = peers()
    least = {"taobao": 0.82, "jd": 0.81, "dairy": 0.76}
    for source, titles in held.items():
        assert not any(title.tuned_on for title in titles if source != "dairy")
        mine = scored(titles, ours)
        assert mine["f1"] >= least[source], source
        for peer in (ALL, PLAIN, "tfidf_5"):
            assert mine["f1"] > scored(titles, others[peer])["f1"], (source, peer)


def test_what_words_of_public_titles_were_marked_as_becomes_a_table(tmp_path):
    marked = (
        ("适用手机壳", [(0, 2, "5"), (2, 4, "40"), (4, 5, "4")]),
        ("手机,光明", [(0, 2, "40"), (3, 5, "1")]),
        ("手机", []),
    )
    found = marks_of_words(Marked(title_of(text, marks), tuple(marks)) for text, marks in marked)
    assert found["光明"] == {"1": 1}
    assert found["手机"]["O"] == 1
    table = parse_title_words(written_words(found, 3))
    assert table["光明"] == "x rare"
    assert table.keys() == found.keys()


def test_titles_of_the_contests_sample_and_shared_ones_are_not_learned_from(tmp_path):
    def conll_of(*texts):
        return "\n\n".join("\n".join(f"{char} O" for char in text) for text in texts) + "\n"

    products = tmp_path / "products"
    for path, texts in {
        products / "public" / SAMPLE: ("红鞋",),
        products / "jd_titles_ner.conll": ("蓝鞋",),
        products / "taobao_titles_ner.conll": ("白鞋",),
        products / "public" / BY_PEOPLE: ("红,鞋", "蓝鞋", "白鞋", "黑鞋"),
    }.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(conll_of(*texts), "utf-8")
    (products / "dairy_titles_gold.jsonl").write_text("", "utf-8")
    (products / "public" / BY_MODEL).parent.mkdir(parents=True)
    with ZipFile(products / "public" / BY_MODEL, "w") as packed:
        packed.writestr("titles.txt", conll_of("黑鞋", "绿鞋"))
    assert [one.title.text for one in public_titles(tmp_path)] == ["黑鞋", "绿鞋"]
