"""Conditions that choose products, as a person writes them: `category=unknown`, `group=shop`, `import=3`."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from app.views.doubts import Doubt, list_doubts
from splitter.catalog.model import Catalog
from splitter.catalog.names import Category, Group
from splitter.errors import InputError
from splitter.lexicon import Role, numbered_brand, title_role
from splitter.normalize import name_key
from tasks.store.queries import products
from tasks.store.queries.products import ProductSettings
from tasks.store.sql.transaction import Transaction

UNKNOWN = "unknown"
"""Value of the condition that chooses products without a category."""
CATEGORIES = (UNKNOWN, *(str(one) for one in Category))
GROUPS = tuple(str(one) for one in Group)
DOUBTS = tuple(str(one) for one in Doubt)
FIELDS = ("brand", "category", "counted_as", "doubt", "group", "import", "keyword", "name", "priority")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductChoice:
    """Conditions on products. All must hold; an empty text or `None` sets no condition.

    Attributes:
        brand: a brand that must be among the keywords.
        category: a name in `CATEGORIES`, or `UNKNOWN`.
        counted_as: name of the product under which the reviews are counted.
        doubt: a name in `DOUBTS`.
        group: a group of sites; the product must be limited to sites of this group.
        number: number of an import that named the product.
        keyword: a word that must be among the keywords.
        name: text that the name must contain.
    """

    brand: str = ""
    category: str = ""
    counted_as: str = ""
    doubt: str = ""
    group: str = ""
    number: int | None = None
    keyword: str = ""
    name: str = ""
    priority: int | None = None

    def fits(self, product: ProductSettings, sites: Collection[str]) -> bool:
        """Return True if a product fulfils all conditions except the one on the import, which is not checked here.

        Args:
            sites: domains of the sites in `group`.
        """
        if self.brand and name_key(self.brand) != name_key(find_brand(product.keywords)):
            return False
        if self.category and self.category != (product.category or UNKNOWN):
            return False
        if self.counted_as and name_key(self.counted_as) != name_key(product.counted_as or ""):
            return False
        if self.doubt and self.doubt not in list_doubts(product):
            return False
        if self.group and not (product.sites and set(product.sites) <= set(sites)):
            return False
        if self.keyword and name_key(self.keyword) not in map(name_key, product.keywords):
            return False
        if self.priority is not None and self.priority != product.priority:
            return False
        return not self.name or name_key(self.name) in name_key(product.name)


def find_brand(keywords: Iterable[str]) -> str:
    """Return the first brand among the keywords of a product; empty if there is none."""
    brands = (word if title_role(word) is Role.BRAND else numbered_brand(word) for word in keywords)
    return next(filter(None, brands), "")


def list_chosen(tx: Transaction, choice: ProductChoice, catalog: Catalog) -> list[ProductSettings]:
    """Return the products that fit a choice, ordered by number."""
    sites = {name for name, site in catalog.sites.items() if site.group == choice.group}
    known = products.list_settings(tx, choice.number)
    return [one for one in known if choice.fits(one, sites)]


def parse_conditions(texts: Iterable[str]) -> ProductChoice:
    """Parse conditions of the form FIELD=VALUE.

    Raises:
        InputError: a text has another form, a field or value is unknown, or a field is given twice.
    """
    given: dict[str, str] = {}
    for text in texts:
        field, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not value:
            raise InputError(
                "{text!r} is no condition; write FIELD=VALUE, as category=unknown", text=text[:60]
            )
        if field not in FIELDS:
            raise InputError(
                "there is no field {field!r} to choose by; there are {fields}",
                field=field[:40],
                fields=FIELDS,
            )
        if field in given:
            raise InputError("{field} is given twice; a product has one", field=field)
        given[field] = value
    for field, values in (("category", CATEGORIES), ("doubt", DOUBTS), ("group", GROUPS)):
        if field in given and given[field] not in values:
            raise InputError(
                "there is no {field} {value!r}; there are {values}",
                field=field,
                value=given[field][:40],
                values=tuple(values),
            )
    return ProductChoice(
        brand=given.get("brand", ""),
        category=given.get("category", ""),
        counted_as=given.get("counted_as", ""),
        doubt=given.get("doubt", ""),
        group=given.get("group", ""),
        keyword=given.get("keyword", ""),
        name=given.get("name", ""),
        number=_read_number("import", given),
        priority=_read_number("priority", given),
    )


def _read_number(field: str, given: dict[str, str]) -> int | None:
    text = given.get(field)
    if text is None:
        return None
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) < 16):
        raise InputError("{field} {value!r} is no whole number", field=field, value=text[:40])
    return int(text)
