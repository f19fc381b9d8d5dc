"""The keyword sets of a product: its own and those of its aliases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from splitter.keywords import keyword_sets_of, keywords_of

KeywordSet = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ProductQuery:
    """A product with the AND keywords it is searched by.

    Attributes:
        product: its name, as written.
        keywords: of the name; at least one.
        aliases: the keywords with another product word (`keyword_sets_of`), and of each alternative name its own. Each
            is searched by itself, on every site, within the product's task.
    """

    product: str
    keywords: KeywordSet
    aliases: tuple[KeywordSet, ...] = ()

    @property
    def keyword_sets(self) -> tuple[KeywordSet, ...]:
        """The name's keywords, then those of the aliases; sets of the same words only once."""
        different: dict[frozenset[str], KeywordSet] = {}
        for words in (self.keywords, *self.aliases):
            different.setdefault(frozenset(words), words)
        return tuple(different.values())


def product_query(name: str, *, keywords: Sequence[str] = (), aliases: Sequence[str] = ()) -> ProductQuery:
    """Makes a query of a product name.

    Args:
        name: as a person wrote it.
        keywords: given instead of those found in the name.
        aliases: alternative names of the product.

    Raises:
        ProductNameError: the name or an alias is empty, over 200 characters, or leaves no keyword.
    """
    own = (keywords_of(name, override=keywords),) if keywords else keyword_sets_of(name)
    return ProductQuery(name.strip(), own[0], (*own[1:], *(keywords_of(alias) for alias in aliases)))
