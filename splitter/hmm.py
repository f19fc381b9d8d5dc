"""jieba's hidden Markov model for runs of characters that are no known words, laid out for speed.

The four states are where a character stands in its word: B begin, M middle, E end, S a word by itself. The
cuts are those of ``jieba.finalseg`` (same tables, same order of additions, same choice between equals), by
test.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from splitter.dictionary import import_jieba

_NEVER = -3.14e100
_Four = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class UnknownWords:
    """Cuts runs of Chinese characters into words that no dictionary has.

    Attributes:
        start: log probability of B, M, E, S for the first character.
        steps: log probabilities of the eight possible steps: E>B, S>B, M>M, B>M, B>E, M>E, S>S, E>S.
        emit: log probabilities of a character in B, M, E, S.
    """

    start: _Four
    steps: tuple[float, ...]
    emit: Mapping[str, _Four]

    def cut(self, run: str) -> list[str]:
        """Cuts a run of at least one Chinese character (U+4E00 to U+9FD5)."""
        return _words(run, self._states(run))

    def _states(self, run: str) -> str:
        emit, nowhere = self.emit, (_NEVER,) * 4
        eb, sb, mm, bm, be, me, ss, es = self.steps
        first = emit.get(run[0], nowhere)
        b, m, e, s = (start + here for start, here in zip(self.start, first, strict=True))
        back: list[tuple[str, str, str, str]] = []
        for char in run[1:]:
            in_b, in_m, in_e, in_s = emit.get(char, nowhere)
            b_e, b_s = e + eb + in_b, s + sb + in_b
            m_m, m_b = m + mm + in_m, b + bm + in_m
            e_b, e_m = b + be + in_e, m + me + in_e
            s_s, s_e = s + ss + in_s, e + es + in_s
            back.append(
                (
                    "E" if b_e > b_s else "S",
                    "B" if m_b > m_m else "M",
                    "B" if e_b > e_m else "M",
                    "E" if s_e > s_s else "S",
                )
            )
            b = b_e if b_e > b_s else b_s
            m = m_b if m_b > m_m else m_m
            e = e_b if e_b > e_m else e_m
            s = s_e if s_e > s_s else s_s
        state = "E" if e > s else "S"
        path = [state]
        for before in reversed(back):
            state = before["BMES".index(state)]
            path.append(state)
        return "".join(reversed(path))


def _words(run: str, states: str) -> list[str]:
    words: list[str] = []
    begin = done = 0
    for place, state in enumerate(states):
        if state == "B":
            begin = place
        elif state == "E":
            words.append(run[begin : place + 1])
            done = place + 1
        elif state == "S":
            words.append(run[place])
            done = place + 1
    if done < len(run):
        words.append(run[done:])
    return words


def load_unknown_words() -> UnknownWords:
    """The model with jieba's tables."""
    import_jieba()
    from jieba.finalseg import prob_emit, prob_start, prob_trans

    emit, start, step = prob_emit.P, prob_start.P, prob_trans.P
    in_b, in_m, in_e, in_s = (emit[state] for state in "BMES")
    table = {
        char: (in_b.get(char, _NEVER), in_m.get(char, _NEVER), in_e.get(char, _NEVER), in_s.get(char, _NEVER))
        for char in {*in_b, *in_m, *in_e, *in_s}
    }
    steps = tuple(step[a].get(b, _NEVER) for a, b in ("EB", "SB", "MM", "BM", "BE", "ME", "SS", "ES"))
    return UnknownWords((start["B"], start["M"], start["E"], start["S"]), steps, table)
