"""Pictures as trees, for tests that compare two programs that draw them."""

import re
from xml.etree import ElementTree

Tree = tuple[str, tuple[tuple[str, str], ...], str, tuple["Tree", ...]]
NUMBER = re.compile(r"-?\d+\.?\d*")
IGNORED = "xml-space"  # it has no effect


def tree(svg: str) -> Tree:
    """The elements, their attributes and their text; lengths are whole pixels, since the programs may round halves."""
    return _tree(ElementTree.fromstring(svg))


def _tree(element: ElementTree.Element) -> Tree:
    attributes = tuple(sorted((name, _whole(name, value)) for name, value in element.items() if name != IGNORED))
    words = "\n".join((element.text or "", *(child.tail or "" for child in element))).strip()
    return element.tag, attributes, words, tuple(_tree(child) for child in element)


def _whole(name: str, value: str) -> str:
    if name in ("id", "class", "data-lane", "href"):
        return value
    return NUMBER.sub(lambda number: str(round(float(number[0]) / 2)), value)
