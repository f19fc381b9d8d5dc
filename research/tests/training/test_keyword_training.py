"""The training of keywords, joins and title words on titles made by hand."""

from zipfile import ZipFile

from research.tools.titles import Span, Title, title_of
from research.training.keyword_reviews import Asking, Collection
from research.training.public_titles import BY_MODEL, BY_PEOPLE, SAMPLE, Marked, public_titles
from research.training.train_joins import pairs
from research.training.train_joins import train as train_joins
from research.training.train_keywords import examples, train, written
from research.training.train_title_words import marks_of_words
from research.training.train_title_words import written as written_words
from splitter.keyword_classifier import parse_weights, title_marks


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


def test_joins_are_learned_from_marked_words():
    titles = [Title("东菱,吐司机", (Span(3, 6, "product"),)), Title("吐司机", (Span(1, 3, "product"),))]
    assert list(pairs(titles)) == [("吐", "司机", True), ("吐", "司机", False)]
    weights = train_joins([(["head 鞋 1"], True)] * 4 + [(["head 色 1"], False)] * 4)
    assert weights["head 鞋 1"] > 0 > weights["head 色 1"]


def test_what_words_of_public_titles_were_marked_as_becomes_a_table(tmp_path):
    marked = (
        ("适用手机壳", [(0, 2, "5"), (2, 4, "40"), (4, 5, "4")]),
        ("手机,光明", [(0, 2, "40"), (3, 5, "1")]),
        ("手机", []),
    )
    found = marks_of_words(Marked(title_of(text, marks), tuple(marks)) for text, marks in marked)
    assert found["光明"] == {"1": 1}
    assert found["手机"]["O"] == 1
    table = title_marks(written_words(found, 3))
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
