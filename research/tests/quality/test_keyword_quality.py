"""What `bench keywords` counts, and that the chooser stays as good as it was."""

from pathlib import Path

import pytest

from research.bench.quality.keywords import ALL, PLAIN, ours, peers
from research.tools.pagetruth import SAMPLES
from research.tools.titles import Score, Span, Title, conll, dairy, found_whole, scored
from research.tools.today import Name, faults, names, of_today
from research.training.train_keywords import halves

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
    assert (added.keywords, added.right) == (0, 0)


def test_words_are_counted():
    score = counted("光明", "牛", "轻薄")
    assert (score.keywords, score.right) == (3, 2)
    assert score.found == {"brand": 1, "product": 1, "model": 0}
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


def test_a_gold_word_is_found_whole_by_all_of_its_characters():
    assert found_whole([TITLE], lambda _: ["光明", "牛奶"]) == pytest.approx(2 / 3)
    assert found_whole([TITLE], lambda _: ["光明", "牛", "轻薄P30"]) == pytest.approx(1 / 3)


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
