"""The voice of a review: a buyer's complaint or praise, a question, news, a company's, or another's.

A small network over runs of one to three characters: each run has a row of 16 numbers, found by its hash (Joulin et
al., EACL 2017). The rows of a text's runs are added up and pass one hidden layer. Stars, author and the kind of the
site shift the odds. `docs/voices.md` defines the voices and has the training and the scores of the network.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files
from io import BytesIO
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from splitter.catalog.names import Group

from tasks.domain.pages import Review
from tasks.domain.voices import Voice, VoiceJudgement
from tasks.reading.judge.runs import ORDERS, hash_runs, plain_codes

VOICES = tuple(Voice)
_NAMES = tuple(voice.value for voice in VOICES)
_COMPLAINT, _PRAISE = _BUYERS = 0, 1  # the first of the voices
_COMPANY = VOICES.index(Voice.COMPANY)

HEAD, TAIL = 280, 120
"""Characters read of the beginning and of the end of a longer text."""
LEVELS = 54
"""Largest number of a row: the numbers of the longest text's runs still fit into 16 bits together."""
BITS = 18
SCOPE = 4
"""Characters behind a negation that it reaches, unless a mark of punctuation or another negation ends it before."""
_MARKED = re.compile(r"(?:https?://|www\.)[\x21-\x7e]+|@[\w-]{1,30}|\[[^\[\]\s]{1,8}\]")
_MARKS = {"@": "A", "[": "F"}
_NEGATES, _ENDS = 1, 2
_AHEAD = np.arange(1, SCOPE + 1)

_RATED, _LEAN = 2.5, 3.0
_OF_COMPANY = 5.0
"""Shifts of log odds: a record with stars is a buyer's, and the stars lean to praise or complaint; an author who speaks
for a company. The file of the network has those of the kinds of sites."""
_TELLING = frozenset({Group.COMPLAINTS, Group.SHOP})
"""Kinds of sites where a text in another language than Chinese is a buyer's, too."""
_FOREIGN = re.compile(r"[^\W\d_\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_HAN = re.compile(r"[\u3400-\u9fff]")
_SPEAKS_FOR_COMPANY = re.compile(
    r"(?:.{0,12}(?:客服|官方|商家|店家|卖家|掌柜|店长|开发者)(?:回复|答复|小二|专员|号)?|.{0,20}(?:旗舰店|专卖店|官方微博|官微))[\s:：]*"
)

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class VoiceNetwork:
    """Rows of runs and the layers behind them. A layer's last row holds its constants.

    Attributes:
        packed: rows of numbers from 0 to `LEVELS`, one of each hash of a run, as `pack` makes them.
        hidden: of the hidden layer, whose values below 0 become 0; shape (2 * size + 1, hidden). It sees the sum over
            all runs, then the sum over those that begin where a negation reaches.
        out: of the voices' log odds, then the sentiment's; shape (hidden + 1, voices + 1).
        factors: of the kinds of sites: what the log odds are multiplied by there.
        shifts: of the kinds of sites: what is then added to the voices' log odds; each of shape (voices,).
    """

    packed: NDArray[np.uint64]
    hidden: Floats
    out: Floats
    factors: Mapping[Group, float] = field(default_factory=dict)
    shifts: Mapping[Group, Floats] = field(default_factory=dict)

    @property
    def rows(self) -> NDArray[np.uint8]:
        """A copy of the rows, not packed; shape (2 ** BITS, size)."""
        return self.packed.view(np.uint16).astype(np.uint8)

    def told(self, texts: Sequence[str]) -> Floats:
        """Return the voices' log odds of texts, then the sentiment's; shape (texts, voices + 1)."""
        runs = runs_of(texts)
        found = self.packed.take(runs.hashes, 0)
        together = found[0]
        for more in found[1:]:
            together += more
        sums = np.zeros((len(texts), 2, together.shape[1]), np.uint64)
        counts = np.empty((len(texts), 2, 1), np.float32)
        np.add.reduceat(together, runs.starts, out=sums[:, 0])
        counts[:, 0, 0] = runs.chars
        first = runs.denied.searchsorted(runs.starts)
        counts[:-1, 1, 0] = first[1:] - first[:-1]
        counts[-1, 1, 0] = len(runs.denied) - first[-1]
        having = counts[:, 1, 0].nonzero()[0]
        if len(having):
            sums[having, 1] = np.add.reduceat(together.take(runs.denied, 0), first[having])
        seen = sums.view(np.uint16).astype(np.float32)
        seen -= np.float32(ORDERS * LEVELS / 2) * counts
        seen /= np.sqrt(np.float32(ORDERS) * counts[:, :1])
        seen = seen.reshape(len(texts), -1)
        told: Floats = np.maximum(seen @ self.hidden[:-1] + self.hidden[-1], 0) @ self.out[:-1] + self.out[-1]
        return told


def pack(rows: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Return rows with four numbers of 16 bits in each value, which are added up together; shape (rows, size / 4)."""
    return rows.astype(np.uint16).view(np.uint64)


class Runs(NamedTuple):
    """The runs of texts that stand one after the other, each with two blanks before it.

    Attributes:
        hashes: of the runs that begin at each character, below 2 ** BITS; shape (ORDERS, characters).
        starts: where each text begins; shape (texts,).
        chars: number of characters of each text; shape (texts,).
        denied: places of the characters that a negation reaches (`SCOPE`), ascending.
    """

    hashes: NDArray[np.uint32]
    starts: NDArray[np.intp]
    chars: Floats
    denied: NDArray[np.intp]


def runs_of(texts: Sequence[str]) -> Runs:
    """Return the runs of texts."""
    read = [f"{one[:HEAD]} {one[-TAIL:]}" if len(one) > HEAD + TAIL else one for one in texts]
    joined = "  ".join(["", *read, ""])
    if "@" in joined or "[" in joined or "//" in joined or "www." in joined:
        read = [_MARKED.sub(lambda found: _MARKS.get(found[0][0], "U"), one) for one in read]
        joined = "  ".join(["", *read, ""])
    codes = plain_codes(joined)
    lengths = np.array([len(one) + 2 for one in read])
    runs = hash_runs(codes, BITS)
    return Runs(runs, lengths.cumsum() - lengths, lengths.astype(np.float32), _denied(codes))


def _denied(codes: NDArray[np.uint32]) -> NDArray[np.intp]:
    """Return the places of the characters that a negation reaches, each once, ascending."""
    kinds = _kinds().take(codes)
    negations: NDArray[np.intp] = (kinds == _NEGATES).nonzero()[0]
    places = negations[:, None] + _AHEAD
    ahead = kinds.take(places, mode="clip")  # the last one ends a part
    ended = ahead == _ENDS
    ended[:, 1:] |= ahead[:, :-1] == _NEGATES
    reached: NDArray[np.intp] = places[~np.logical_or.accumulate(ended, 1)]
    return reached


@cache
def _kinds() -> NDArray[np.uint8]:
    """Return for each character if it negates, ends a part of a sentence, or does neither."""
    kinds = np.zeros(1 << 16, np.uint8)
    kinds[[ord(one) for one in "不没无零未别莫非"]] = _NEGATES
    kinds[[ord(one) for one in " ,.;:!?。、…~-()/|\"'“”‘’《》【】"]] = _ENDS
    return kinds


def judgement(review: Review, group: Group | None = None) -> VoiceJudgement:
    """Return the voice of a review.

    Args:
        group: the kind of its site.
    """
    return voices_of([review], group)[0]


def voices_of(reviews: Sequence[Review], group: Group | None = None) -> list[VoiceJudgement]:
    """Return the voices of reviews of a page, which cost less together than one by one.

    A title is read only if there is no text: of a thread it is the asker's, and of no reply. A text in another language
    than Chinese is not judged, unless its stars, its author or the kind of its site tell.

    Args:
        group: the kind of their site.
    """
    return VoiceOdds(reviews, group).judge(MODEL)


class VoiceOdds:
    """The log odds of the voices of reviews, before one voice is chosen for each.

    Args:
        group: the kind of their site.
        pages: number of reviews of each page, in their order. Default: all are of one page.

    Attributes:
        texts: what is read of each review.
        foreign: rows of texts in another language than Chinese.
        of_texts: probabilities of the voices by the texts alone; shape (reviews, voices).
    """

    def __init__(
        self, reviews: Sequence[Review], group: Group | None, pages: Sequence[int] | None = None
    ) -> None:
        self._reviews = reviews
        self._pages = [len(reviews)] if pages is None else pages
        self._group = group
        self.texts = [one.body if one.body.strip() else one.title for one in reviews]
        self.foreign = [row for row, text in enumerate(self.texts) if is_foreign(text)]
        held = network()
        told = held.told(self.texts) if reviews else np.zeros((0, len(VOICES) + 1), np.float32)
        self._odds = told[:, :-1]
        self.of_texts = _shares(self._odds)
        self._mood = np.tanh(told[:, -1] / 2)
        self._read_context(held)

    def _read_context(self, held: VoiceNetwork) -> None:
        """Shift the odds by what the record and its site say."""
        odds = self._odds
        if self.foreign:
            # The runs of another language say little: a buyer's praise and complaints are told apart, nothing else.
            lean_of = (odds[self.foreign, _COMPLAINT] - odds[self.foreign, _PRAISE]) / 2
            odds[self.foreign] = 0
            odds[self.foreign, _COMPLAINT] = lean_of
            odds[self.foreign, _PRAISE] = -lean_of
        if self._group is not None and self._group in held.factors:
            odds *= held.factors[self._group]
            odds += held.shifts[self._group]
        for row, (review, stars) in enumerate(zip(self._reviews, self._list_stars(), strict=True)):
            if review.rating is not None:
                lean = max(-1.0, min((review.rating / stars - 0.6) / 0.4, 1.0))
                odds[row, _COMPLAINT] += _RATED - _LEAN * lean
                odds[row, _PRAISE] += _RATED + _LEAN * lean
            if review.author and _speaks_for_company(review.author):
                odds[row, _COMPANY] += _OF_COMPANY

    def _list_stars(self) -> list[float]:
        """Return for each review how many stars its page gives at most: 5, 10 or 100."""
        stars: list[float] = []
        for count in self._pages:
            ratings = [one.rating for one in self._reviews[len(stars) : len(stars) + count] if one.rating]
            best = max(ratings, default=0.0)
            stars += [next((top for top in (5.0, 10.0) if best <= top), 100.0)] * count
        return stars

    def raise_complaints(self, rows: Sequence[int], by: float) -> None:
        """Add to the log odds of a complaint."""
        self._odds[rows, _COMPLAINT] += by

    def judge(self, model: str) -> list[VoiceJudgement]:
        """Return the voice of each review.

        Args:
            model: id of what decided it.
        """
        if not self._reviews:
            return []
        shares = _shares(self._odds)
        buyers = np.minimum(shares[:, _COMPLAINT] + shares[:, _PRAISE], 1)
        columns = (shares.argmax(1).tolist(), shares.max(1).tolist(), buyers.tolist(), self._mood.tolist())
        judged = [
            VoiceJudgement(_NAMES[best], share, buyer, sentiment, model)
            for best, share, buyer, sentiment in zip(*columns, strict=True)
        ]
        if self._group not in _TELLING:
            for row in self.foreign:
                review = self._reviews[row]
                if review.rating is None and not _speaks_for_company(review.author):
                    judged[row] = NOT_JUDGED._replace(model=model)
        return judged


def _shares(odds: Floats) -> Floats:
    """Return the probabilities of the voices; shape (reviews, voices)."""
    if not len(odds):
        return odds
    shares: Floats = np.exp(odds - odds.max(1, keepdims=True))
    shares /= shares.sum(1, keepdims=True)
    return shares


def is_foreign(text: str) -> bool:
    """Return True if a text is mostly in Latin letters, or those of another alphabet.

    A name in Latin letters stands in many Chinese texts, so words are counted: there are at least twice as many as
    Chinese characters.
    """
    if len(text.encode("utf-8", "surrogatepass")) > 2 * len(text):
        return False
    written = _MARKED.sub(" ", text)
    words = len(_FOREIGN.findall(written))
    return words > 0 and words >= 2 * len(_HAN.findall(written))


@lru_cache(4096)
def _speaks_for_company(author: str) -> bool:
    return _SPEAKS_FOR_COMPANY.fullmatch(author) is not None


@cache
def network() -> VoiceNetwork:
    """Return the network that comes with the project."""
    return read_network(_file())


def read_network(file: bytes) -> VoiceNetwork:
    """Read a network from a file of its arrays, by name."""
    with np.load(BytesIO(file), allow_pickle=False) as held:
        kinds = [Group(name) for name in held["kinds"].tolist()]
        factors = dict(zip(kinds, held["factors"].tolist(), strict=True))
        shifts = dict(zip(kinds, held["shifts"], strict=True))
        return VoiceNetwork(pack(held["rows"]), held["hidden"], held["out"], factors, shifts)


def _file() -> bytes:
    return files("tasks.reading.judge").joinpath("voice-network.npz").read_bytes()


MODEL = hashlib.sha256(_file()).hexdigest()[:12]
"""The version of the network."""
NOT_JUDGED = VoiceJudgement(None, None, None, None, MODEL)
"""Of a text that the network can't read."""
