"""The records of a page and their fields, each field selected once for all records.

A selector of CSS says of an element whether it matches, whatever the search started from (lexbor knows no
``:scope``). So the first match inside a record is the first of the page's matches that has the record among its
ancestors, or is the record; a search from every record would find nothing else, and costs five times as much.
"""

from __future__ import annotations

from collections.abc import Sequence

from selectolax.lexbor import LexborHTMLParser, LexborNode

from tasks.reading.markup import Field, select


class Records:
    """The elements a rule's record selector matches, in the order of the page.

    Attributes:
        nodes: the records.
    """

    def __init__(self, tree: LexborHTMLParser, css: str) -> None:
        """Raises FetchError(BAD_RULE) for what is no selector."""
        self.nodes = select(tree, css)
        self._ids = [node.mem_id for node in self.nodes]
        self._places = {node_id: place for place, node_id in enumerate(self._ids)}
        self._scope: LexborHTMLParser | LexborNode = tree
        self._nested = False
        self._found: dict[str, Sequence[LexborNode | None]] = {}
        parents = [node.parent for node in self.nodes]
        apart = {parent.mem_id if parent is not None else 0 for parent in parents}
        if len(apart) == 1 and parents[0] is not None:
            self._scope = parents[0]
        else:
            self._nested = self._any_nested()

    def values(self, field: Field | None) -> list[str]:
        """A field's collapsed value in every record; empty where it is not there, or where there is no field."""
        if field is None or not self.nodes:
            return [""] * len(self.nodes)
        values = field.values(self._first_matches(field.css) if field.css else self.nodes)
        if field.otherwise is None or all(values):
            return values
        return [value or other for value, other in zip(values, self.values(field.otherwise), strict=True)]

    def _first_matches(self, css: str) -> Sequence[LexborNode | None]:
        """For every record its first match of a selector; fields often share one (a@href, a)."""
        if css not in self._found:
            self._found[css] = self._search(css)
        return self._found[css]

    def _search(self, css: str) -> Sequence[LexborNode | None]:
        nodes = select(self._scope, css)
        if not self._nested and self._one_in_each(nodes):
            return nodes
        found: list[LexborNode | None] = [None] * len(self.nodes)
        for node in nodes:
            for place in self._owners(node):
                if found[place] is None:
                    found[place] = node
        return found

    def _one_in_each(self, nodes: list[LexborNode]) -> bool:
        """True where the matches are one in each record, all equally deep: pages made from a template."""
        if len(nodes) != len(self.nodes):
            return False
        level: list[LexborNode | None] = list(nodes)
        while level[0] is not None and level[0].mem_id not in self._places:
            level = [node.parent if node is not None else None for node in level]
        return [node.mem_id for node in level if node is not None] == self._ids

    def _owners(self, node: LexborNode) -> list[int]:
        """Places of the records a node is in: one at most, unless records are nested."""
        places: list[int] = []
        above: LexborNode | None = node
        while above is not None:
            place = self._places.get(above.mem_id)
            if place is not None:
                places.append(place)
                if not self._nested:
                    break
            above = above.parent
        return places

    def _any_nested(self) -> bool:
        """True where a record has another among its ancestors."""
        passed: set[int] = set()
        for node in self.nodes:
            above = node.parent
            while above is not None and above.mem_id not in passed:
                if above.mem_id in self._places:
                    return True
                passed.add(above.mem_id)
                above = above.parent
        return False
