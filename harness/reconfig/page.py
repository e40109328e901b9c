"""The tables in a page of facts: each between two comments, written or compared by the command.

<!-- table: NAME -->
| ... |
<!-- end -->
"""

import re
from collections.abc import Iterable, Mapping

from harness.reconfig.facts import FactTable

PLACE = re.compile(r"<!-- table: ([a-z-]+) -->\n(.*?)<!-- end -->", re.DOTALL)


def names_in(page: str) -> tuple[str, ...]:
    """The names of the tables of a page."""
    return tuple(found[1] for found in PLACE.finditer(page))


def shown(page: str, name: str) -> FactTable | None:
    """A table of a page; None if the page has none of this name."""
    text = next((found[2].strip() for found in PLACE.finditer(page) if found[1] == name), "")
    lines = [tuple(line.removeprefix("| ").removesuffix(" |").split(" | ")) for line in text.splitlines()]
    return FactTable(name, lines[0], tuple(lines[2:])) if lines else None


def written(page: str, tables: Iterable[FactTable]) -> str:
    """A page with these tables in their places; other places stay as they are."""
    named = _by_name(tables)

    def table(found: re.Match[str]) -> str:
        if found[1] not in named:
            return found[0]
        return f"<!-- table: {found[1]} -->\n\n{named[found[1]].markdown()}\n\n<!-- end -->"

    return PLACE.sub(table, page)


def differences(page: str, tables: Iterable[FactTable]) -> tuple[str, ...]:
    """A line for each table that the page lacks, and for each row that differs; timed tables are not compared."""
    shown = {found[1]: found[2].strip() for found in PLACE.finditer(page)}
    found: list[str] = []
    for name, table in _by_name(tables).items():
        if name not in shown:
            found.append(f"table {name}: the page has no place for it")
        elif not table.timed and shown[name] != table.markdown():
            found += _lines(name, shown[name].splitlines(), table.markdown().splitlines())
    return tuple(found)


def _lines(name: str, page: list[str], seen: list[str]) -> Iterable[str]:
    for number in range(max(len(page), len(seen))):
        one = page[number] if number < len(page) else "nothing"
        other = seen[number] if number < len(seen) else "nothing"
        if one != other:
            yield f"table {name}, line {number + 1}: the page has {one}; the servers gave {other}"


def _by_name(tables: Iterable[FactTable]) -> Mapping[str, FactTable]:
    return {table.name: table for table in tables}
