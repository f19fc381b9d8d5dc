"""How well a name's keywords identify the product, beside all of jieba's words and other ways to choose.

Scores against gold words (defined in `research.tools.titles`) on the fifth of the titles that nothing was tuned on, and on
all dairy titles, which took no part in training; names of today (`research.tools.today`); and what the keywords would
find among real reviews (`research.training.keyword_reviews`). ``docs/keywords.md`` explains the figures.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from research.tools.pagetruth import NO_SHARED, SAMPLES
from research.tools.titles import dairy, found_whole, scored
from research.tools.today import of_today
from research.training.keyword_reviews import Asking, Choose, collections
from research.training.train_keywords import halves
from splitter.errors import ProductNameError
from splitter.keywords import MAX_KEYWORDS, keyword_sets_of, keywords_of, product_query
from splitter.lexicon import Role, lexicon, roles
from splitter.normalize import drop_amounts, normalize
from splitter.words import jieba_tokenizer

OURS, FIRST, ALL, PLAIN = "ours", "ours_first_query", "jieba_all", "jieba_no_stop_words"
_TOP = (1, 2, 3, 4, 5, 6, 10)


def run(shared: Path, smallest: bool) -> dict[str, Any]:
    """Score our keywords and those of the peers.

    Returns:
        ``ratios``: F1 of ours, and over that of all of jieba's words, for each source of titles; ``figures``:
        ``SOURCE.CHOOSER.MEASURE`` for titles, ``reviews.COLLECTION.CHOOSER.MEASURE`` for reviews.

    Without the shared data, titles are those of ``research/samples`` (source ``sample``) and there are no reviews.
    """
    shared = NO_SHARED if smallest else shared
    there = shared.is_dir()
    held = halves(shared)[1] if there else {"sample": dairy(SAMPLES / "titles.jsonl")}
    figures: dict[str, Any] = {}
    choosers = peers() | {FIRST: first_query, OURS: ours}
    named = shared / "products" / "names-of-today.tsv"
    figures |= {
        f"today.{key}": value for key, value in of_today(named if there else SAMPLES / "today.tsv").items()
    }
    ratios: dict[str, float] = {}
    for source, titles in held.items():
        figures[f"{source}.titles"] = len(titles)
        for chooser, choose in choosers.items():
            scores = scored(titles, choose)
            figures |= {f"{source}.{chooser}.{measure}": value for measure, value in scores.items()}
        figures[f"{source}.{OURS}.found_whole"] = round(found_whole(titles, ours), 3)
        figures[f"{source}.{OURS}.queries"] = round(sum(queries(t.text) for t in titles) / len(titles), 2)
        ratios[f"{source}_f1_vs_all_words"] = round(
            figures[f"{source}.{OURS}.f1"] / figures[f"{source}.{ALL}.f1"], 3
        )
        ratios[f"{source}_f1"] = figures[f"{source}.{OURS}.f1"]
    ratios["today_right"] = figures["today.right"]
    reviews = collections(shared, held["taobao"] + held["jd"]) if there else {}
    for name, collection in reviews.items():
        figures[f"reviews.{name}.products"] = len(collection.right)
        asking = Asking(collection)
        results = {chooser: asking.ask(choose) for chooser, choose in choosers.items()}
        results |= {
            f"{OURS}_at_most_{most}": asking.relaxed(first_query, most) for most in range(1, MAX_KEYWORDS)
        }
        results[f"{OURS}_to_a_hit"] = asking.relaxed_to_a_hit(first_query)
        for chooser, found in results.items():
            for measure, value in asdict(found).items():
                figures[f"reviews.{name}.{chooser}.{measure}"] = round(value, 4)
    return {"bench": "keywords", "ratios": ratios, "figures": figures}


def ours(name: str) -> Sequence[str]:
    """Our keywords, of the first query and of those with another product word; none where the name is refused."""
    try:
        return tuple(dict.fromkeys(word for words in keyword_sets_of(name) for word in words))
    except ProductNameError:
        return ()


def queries(name: str) -> int:
    """How many different queries of ours a name has; none where it is refused."""
    try:
        return len(product_query(name).keyword_sets)
    except ProductNameError:
        return 0


def first_query(name: str) -> Sequence[str]:
    """The keywords of the first query; none where the name is refused."""
    try:
        return keywords_of(name)
    except ProductNameError:
        return ()


def peers() -> dict[str, Choose]:
    """Other ways to choose: all of jieba's words, those without stop words and sizes, its best by TF-IDF."""
    tokenizer = jieba_tokenizer()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it leaves its table's file to the garbage collector
        import jieba.analyse

        by_weight = jieba.analyse.TFIDF()
    by_weight.tokenizer = tokenizer
    noise = {word for word, role in roles().items() if role is Role.NOISE} | lexicon().noise

    def words(name: str) -> Sequence[str]:
        return [word for word in dict.fromkeys(tokenizer.cut(name)) if any(char.isalnum() for char in word)]

    def plain(name: str) -> Sequence[str]:
        kept = words(drop_amounts(normalize(name)))
        return [w for w in kept if len(w) > 1 and w.lower() not in noise and not w.isdigit()]

    def top(count: int) -> Choose:
        return lambda name: by_weight.extract_tags(name, topK=count)

    return {ALL: words, PLAIN: plain, **{f"tfidf_{count}": top(count) for count in _TOP}}
