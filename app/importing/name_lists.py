"""Read lists with one name per line. Recognise and refuse other texts: settings, data, code, logs, markup, prose.

Each line gets a weight from 0 to 1: how surely it belongs to such a text. If the sum of the weights exceeds `_LIMIT` of
the number of lines, the text is refused. Numbers and bullets before names are removed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from splitter.errors import InputError, Message, join_messages
from splitter.lexicon import is_brand

_LIMIT = 0.3
_LIMIT_OF_FEW = 0.6
_FEW = 3
"""Texts with fewer lines are not taken for prose: a single long title is not prose."""
LOOKED_AT = 10_000
"""Number of lines at the beginning of a text from which its kind is judged."""
_LONGEST = 300
"""Number of characters at the beginning of a line that are examined."""
_SHOWN = 3
_SHOWN_LENGTH = 60
_PROSE = "prose"

NumberedLines = Iterable[tuple[int, str]]
"""Pairs of line number and line, without blank lines and comments."""


_CODE_WORDS = "def class func fn function struct enum interface namespace module impl type"
_BLOCK_WORDS = "return raise throw yield await pass break continue else try finally do then fi done esac end"
_HEAD_WORDS = (
    "if elif while for switch case catch except with let const var public private protected static async"
)
_IMPORT_WORDS = "import package from use using require include"
_SHELL_WORDS = "sudo apt apt-get pip npm git docker curl cd echo mkdir chmod make brew yum"
_DOCKER_WORDS = "FROM RUN COPY ADD CMD ENTRYPOINT WORKDIR EXPOSE ENV ARG LABEL USER VOLUME"
_SQL_WORDS = "SELECT INSERT CREATE DELETE ALTER DROP JOIN WHERE VALUES GRANT BEGIN COMMIT"
_SQL_STARTS = (
    "select|insert into|create table|delete from|alter table|drop table|group by|order by|left join|where"
)
_FILE_ENDS = (
    "py json yaml yml toml txt md csv log html htm css sh sql xml jpg jpeg png gif pdf doc docx xls xlsx ppt pptx zip "
    "gz conf ini lock exe mp3 mp4 so whl"
)


def _any(words: str) -> str:
    return f"(?:{'|'.join(words.split())})"


_SIGNS = {
    "data": (r"[\[\]{}()]++[,;]?$", r"[\[{]+\s*+[\"{\[]", r"[\"'][^\"']*+[\"']\s*+:"),
    "log": (
        r"\W?\d{4}[-/]\d{1,2}[-/]\d{1,2}[T ,]\s*+\d{1,2}:\d{2}",
        r"\[?\d{1,2}/[A-Z][a-z]{2}/\d{4}",
        r"\[?\d{2}:\d{2}:\d{2}\b",
        r"(?:[A-Z][a-z]{2}\s++){1,2}\d{1,2}\s++\d{2}:\d{2}",
        r"\W?(?:INFO|DEBUG|WARN|WARNING|ERROR|FATAL|CRITICAL|TRACE)\b",
        r"Traceback \(|File \".*\", line|at [\w.$]++\(|\w*(?:Error|Exception): ",
        r"\d{1,3}(?:\.\d{1,3}){3}\b|\[\s*+\d++\.\d{3,}\]|::1\s",
    ),
    "figures": (
        r"\d{4}[-/]\d{1,2}[-/]\d{1,2}[T ,;\t][\d:.,;\s\-+Z]*+$",
        r"[-+¥￥$€]?\d[\d.:%]*+(?:[\s,;|/]++[-+¥￥$€]?\d[\d.:%eE]*+)++[\s,;|]*+$",
        r"(?:[\d*][\d*/,\-]*+\s++){3}",
    ),
    "settings": (
        r"(?:export\s++|set\s++)?[A-Za-z_][\w.\-]*+(?:\[[^\]]*+\])?\s*+[:+?<>~!]?=",
        r"\[\[?[A-Za-z\d_.\-\"' :/@*]++\]\]?$",
        r"(?:BEGIN|END):[A-Z]",
        r"[!/.*][A-Za-z\d_*./\-]*+$|[A-Za-z\d_.\-*]++/$|[A-Za-z\d_\-]++:[^\s:]*+:\d",
    ),
    "code": (
        r"#!|//|/\*|\*/|-- |<\?|\$ |@[A-Za-z_][\w.]*+(?:$|[({])|%[a-z]|\\[A-Za-z]++\b",
        rf"{_any(_IMPORT_WORDS)}\s++[A-Za-z\d_.:*\"'<{{]++(?:;|$|\s(?:as|import)\s)",
        rf"{_any(_CODE_WORDS)}\s++\w++\s*+(?:[({{:<;]|$|\w)",
        rf"{_any(_BLOCK_WORDS)}\b\s*+(?:$|[:;({{\"'\[\]\w])",
        rf"{_any(_HEAD_WORDS)}\s(?=.*[=(){{}}:;\[\"'])",
        rf"{_any(_SQL_WORDS)}\b[\s(;*]|(?:UPDATE|(?:GROUP|ORDER)\s++BY|(?:LEFT|INNER|RIGHT|FULL)\s++JOIN)\s++\w",
        rf"(?:{_SQL_STARTS})\s[A-Za-z\d_*(]",
        rf"{_any(_DOCKER_WORDS)}\s++[a-z\d/.\[$\"]",
        rf"{_any(_SHELL_WORDS)}\s++[-A-Za-z\d_./~$\"']",
        r"[a-z]\w*+\s\"[^\"]*+\"$|'[^']*+',?$|\"{3}|'{3}|```",
        r"[A-Za-z_]\w*+(?:\.\w++)++\(|[A-Za-z_]\w*+\([^()]*[\"'=,][^()]*+\)|[a-z_]\w*+\(\)",
        r"[-dl](?:[r-][w-][xsStT-]){3}|(?:commit|index|diff)\s(?:--git|[0-9a-f]{7})|@@ -\d|(?:---|\+\+\+) [ab]/",
        r"-----BEGIN|[A-Za-z\d+/]{48}[A-Za-z\d+/]*+={0,2}$|[\da-f]{32}[\da-f]*+\b",
    ),
    "file names": (rf"[A-Za-z\d_./\-]*\.{_any(_FILE_ENDS)}$",),
    "markup": (
        r"<(?:[!/?]|[A-Za-z][\w\-]*+[\s/>])",
        r"\|.*\|$|[-=+|:]{3}[-=+|: ]*+$|!?\[[^\]]*+\]\(|\*\*[^*]++\*\*",
    ),
}
"""Patterns for lines of other texts, by kind of text. The first kind that matches counts."""
_KINDS = {
    "settings": Message("settings"),
    "data": Message("data"),
    "figures": Message("figures"),
    "code": Message("code"),
    "markup": Message("markup"),
    "log": Message("log"),
    "prose": Message("prose"),
    "addresses": Message("addresses"),
    "file names": Message("file names"),
}
_STARTS = {kind: re.compile(f"^(?:{'|'.join(signs)})") for kind, signs in _SIGNS.items()}

_KEY = re.compile(r"([A-Za-z_][\w.\-/]*+):(?:\s++(.*))?$")
_VALUE = re.compile(
    r"(?:$|[\"'\[{|>&*!/~<]|[-\d.,:]+(?:\s|$)|(?:true|false|yes|no|null|none|on|off)$|\w++://|\w[\w.+\-]*+@\w)",
    re.IGNORECASE,
)
_CODE_END = re.compile(r"[{}]|\)[;:,]?|[=(]|=>|->|&&|\|\||\\|[;:]")
_DECLARATION = re.compile(r"[a-z\-]++\s*+:\s[^;]*+;")
_OPERATOR = re.compile(
    r"\s(?:==|!=|<=|>=|:=|\+=|-=|=>|->|&&|\|\||<<|>>)\s|::|\$\{|\{\{|\}\}|%\(|\s--[a-z]{2}|`"
)
_PATH = re.compile(r"(?:^|\s)[~.]{0,2}/\w[\w.\-]*+/\w")
_ADDRESS = re.compile(r"https?://|\b\w[\w.+\-]{0,40}@\w[\w\-]{0,40}\.\w")
_TAG = re.compile(r"</\w|<\w++ \w++=|/>")
_HAN = re.compile(r"[\u4e00-\u9fff]")
_CALL = re.compile(r"([a-z_]\w*+)\([\w \"'@*&$,.]*+(?:\)|$)", re.ASCII)
_WORD = re.compile(r"[^\W\d_][^\W\d_'’]*+")
_SMALL = (
    "a about after all also an and any are as at be been before by but can could did do does for from had has "
    "have he her his how i if in into is it its may me more most must my no not of on one only or our over she "
    "should so some such than that the their them then there these they this those to under until up us was we "
    "were what when where which while who will with would you your"
)
_SMALL_WORDS = frozenset(_SMALL.split())
_SMALL_CHARS = frozenset("的了是在我你他她它们这那不也就都而与及被把让给吗呢吧啊着会要因为所以但如果")
_SENTENCE_ENDS = "。！？!?；"


def _weigh(line: str) -> tuple[str, float]:
    """Classify a line as a name or as part of a text of another kind, such as code or prose.

    Returns:
        The kind, and how surely the line belongs to it (0 to 1); ("", 0) for a name.
    """
    line = line[:_LONGEST]
    for kind, start in _STARTS.items():
        if start.match(line):
            return kind, 1.0
    if (key := _KEY.match(line)) is not None and _is_setting(key[1], key[2] or ""):
        return "settings", 1.0
    if (call := _CALL.match(line)) is not None and not is_brand(call[1]):
        return "code", 1.0
    if _TAG.search(line):
        return "markup", 1.0
    if _DECLARATION.fullmatch(line) or _OPERATOR.search(line) or _PATH.search(line):
        return "code", 1.0
    if _ADDRESS.search(line):
        return "addresses", 0.5
    if line.isascii() and (end := _CODE_END.search(line, max(0, len(line) - 2))) is not None:
        if end.end() == len(line) and end[0] not in (")", ";", ":"):
            return "code", 1.0
        if end[0] in (";", ");", "),") or (end[0] == ":" and "(" in line):
            return "code", 0.5
    weight = _prose_weight(line)
    return (_PROSE, weight) if weight else ("", 0.0)


def _is_setting(key: str, value: str) -> bool:
    """Return True if `key: value` is a setting. A brand with its product is not: "Sony: WH-1000XM5"."""
    if _VALUE.match(value):
        return True
    return key[0].islower() and value.isascii() and not is_brand(key)


def _prose_weight(line: str) -> float:
    """Return how surely a line is a sentence (0 to 1), judged by its final punctuation and its function words."""
    han = len(_HAN.findall(line))
    if han:
        marks = sum(line.count(char) for char in _SENTENCE_ENDS)
        pauses = line.count("，") + line.count(", ")
        small = sum(char in _SMALL_CHARS for char in line)
        if "。" in line or marks > 1 or (marks and pauses):
            return 1.0
        is_spoken = han > 7 and small > han * 0.2
        return 0.5 if pauses > 1 or han > 60 or is_spoken or (pauses and han > 20) else 0.0
    words = _WORD.findall(line)
    small = sum(word.casefold() in _SMALL_WORDS for word in words)
    if len(words) >= 5 and small >= len(words) * 0.25:
        return 1.0
    if len(words) > 3 and line[-1] in ".!?:" and words[-1].islower():
        return 0.75
    is_spoken = len(words) > 7 and sum(map(str.islower, words)) > len(words) * 0.75
    return 0.5 if is_spoken or len(words) > 25 else 0.0


def refuse_other_text(lines: NumberedLines, origin: str, instead: Message, *, prose: bool = True) -> None:
    """Raise InputError if a text is not a list of names.

    Args:
        lines: lines of the text with their numbers.
        instead: message that explains what would be right.
        prose: False if the lines may be sentences, as in reviews.

    Raises:
        InputError: the text is of another kind. The message names the kind and quotes three lines.
    """
    weights: dict[str, float] = {}
    doubtful: list[tuple[int, str, str]] = []
    n = n_doubtful = 0
    for number, line in islice(lines, LOOKED_AT):
        kind, weight = _weigh(strip_marker(line))
        n += 1
        if weight and (prose or kind != _PROSE):
            n_doubtful += 1
            weights[kind] = weights.get(kind, 0.0) + weight
            if len(doubtful) < LOOKED_AT:
                doubtful.append((number, kind, line))
    limit = _LIMIT if n > _FEW else _LIMIT_OF_FEW
    if not weights or sum(weights.values()) < limit * n:
        return
    kind = max(weights, key=lambda one: weights[one])
    shown = sorted(doubtful, key=lambda one: one[1] != kind)[:_SHOWN]
    lines_shown = (
        Message("line {n}: {text}", n=number, text=_short(line)) for number, _, line in sorted(shown)
    )
    raise InputError(
        "{origin}: is no list, but looks like {kind} in {doubtful:,} of {n:,} lines. {seen}. {instead}",
        origin=origin,
        kind=_KINDS[kind],
        doubtful=n_doubtful,
        n=n,
        seen=join_messages(lines_shown, "; "),
        instead=instead,
    )


def _short(line: str) -> str:
    text = " ".join(line.split())
    return text if len(text) <= _SHOWN_LENGTH else text[:_SHOWN_LENGTH] + "..."


_BULLET = re.compile(r"^(?:[-*+–—>]\s++|[•·●○◆◇■□▪▫►▶★☆√✓✔☐☑]\s*+)(?:\[[ xX]\]\s++)?")
_NUMBER = re.compile(r"^[（(]?(\d{1,5})(?:[.、)）．:：]|\s)\s*+(?=\S)|^([①-⑳])\s*+(?=\S)")
_PLAIN_NUMBER = re.compile(r"\d++\s")
_ENDS = ",;，；、 \t"
_LEAST_NUMBERED = 0.6
_MOST_LEFT_OUT = 5
"""Maximum step from one number of a numbered list to the next."""


def strip_marker(line: str) -> str:
    """Return a line without surrounding blanks, leading bullet and trailing delimiter."""
    return _BULLET.sub("", line.strip(), count=1).rstrip(_ENDS)


def are_numbered(lines: Sequence[str]) -> bool:
    """Return True if most lines begin with consecutive numbers. The numbers may restart at 1."""
    following, last = 0, 0
    for line in lines:
        number = _number_of(line)
        if _follows(number, last):
            following += 1
            last = number or last
    is_sure = len(lines) > 2 or not any(map(_PLAIN_NUMBER.match, lines))
    return following > 0 and following >= _LEAST_NUMBERED * len(lines) and is_sure


def _number_of(line: str) -> int | None:
    match = _NUMBER.match(line)
    if match is None:
        return None
    return int(match[1]) if match[1] else ord(match[2]) - ord("①") + 1


def _follows(number: int | None, last: int) -> bool:
    return number is not None and (number == 1 or last < number <= last + _MOST_LEFT_OUT)


def read_names(lines: NumberedLines, *, numbered: bool) -> Iterator[tuple[int, str]]:
    """Yield the line number and the name of each line of a list.

    Args:
        numbered: True to remove the numbers before names.
    """
    last = 0
    for place, line in lines:
        name = strip_marker(line)
        number = _number_of(name) if numbered else None
        if number is not None and _follows(number, last):
            last = number
            name = _NUMBER.sub("", name, count=1)
        if len(name) > 2 and name[0] == name[-1] == '"' and name.count('"') == 2:
            name = name[1:-1]
        if name:
            yield place, name
