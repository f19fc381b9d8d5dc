"""A page that is read without rules, with its tree, outline and metadata: each made once, and never changed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from selectolax.lexbor import LexborHTMLParser

from tasks.reading.density import DenseText, dense_text
from tasks.reading.links import Links, links_in
from tasks.reading.markup import parse_whole
from tasks.reading.metadata import Metadata, read_metadata
from tasks.reading.outline import Outline, outline_of


@dataclass(frozen=True)
class Page:
    """The text of an answer, decoded, its final address and Python's name of its encoding.

    The properties are computed when they are first needed. `tree` raises FetchError(TOO_LARGE), see `check_markup`.
    """

    text: str
    url: str
    encoding: str = "utf-8"

    @cached_property
    def tree(self) -> LexborHTMLParser:
        """The whole tree, with scripts."""
        return parse_whole(self.text)

    @cached_property
    def links(self) -> Links:
        return links_in(self.tree, self.url, self.encoding)

    @cached_property
    def outline(self) -> Outline:
        return outline_of(self.tree)

    @cached_property
    def metadata(self) -> Metadata:
        return read_metadata(self.tree)

    @cached_property
    def dense(self) -> DenseText | None:
        """The densest text. An article and a thread differ in it."""
        return dense_text(self.outline, self.metadata.description)
