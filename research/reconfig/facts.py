"""The form of a fact: a table of observations at real servers, the functions that measure it, and its place in a page.

Rules of this module:

- A table is the same in every run, so that `--check` can compare it with the page. Ports are fixed by `Members.plain`,
  and zxids are too, since sessions are local. Times are not compared: they are in tables that are `timed`.
- A cell is observed at a server, and never an expectation.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import zip_longest

from harness.reproduce.by_hand.servers import Bench


@dataclass(frozen=True)
class FactTable:
    """A table of the page; `timed` tables contain times, which differ from run to run."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    timed: bool = False

    def markdown(self) -> str:
        """The table in Markdown."""
        head = ["| " + " | ".join(self.columns) + " |", "|" + " --- |" * len(self.columns)]
        return "\n".join(head + ["| " + " | ".join(row) + " |" for row in self.rows])


Measure = Callable[[Bench], Iterable[FactTable]]
PLACE = re.compile(r"<!-- table: ([a-z-]+) -->\n(.*?)<!-- end -->", re.DOTALL)
"""The place of a table in the page, between two comments."""


def places(page: str) -> dict[str, str]:
    """The text in each place of a page, by the name of its table."""
    return {place[1]: place[2].strip() for place in PLACE.finditer(page)}


def shown(page: str, name: str) -> FactTable | None:
    """A table of a page; None if the page has none of this name."""
    text = places(page).get(name, "")
    lines = [tuple(line.removeprefix("| ").removesuffix(" |").split(" | ")) for line in text.splitlines()]
    return FactTable(name, lines[0], tuple(lines[2:])) if lines else None


def written(page: str, tables: Iterable[FactTable]) -> str:
    """A page with these tables in their places; other places stay as they are."""
    texts = {table.name: f"\n{table.markdown()}\n\n" for table in tables}
    return PLACE.sub(lambda place: f"<!-- table: {place[1]} -->\n{texts.get(place[1], place[2])}<!-- end -->", page)


def differences(page: str, tables: Iterable[FactTable]) -> tuple[str, ...]:
    """A line for each table that the page lacks, and for each row that differs; timed tables are not compared."""
    texts = places(page)
    lines: list[str] = []
    for table in tables:
        if table.name not in texts:
            lines.append(f"table {table.name}: the page has no place for it")
        elif not table.timed:
            rows = zip_longest(texts[table.name].splitlines(), table.markdown().splitlines(), fillvalue="nothing")
            lines += [
                f"table {table.name}, line {number}: the page has {page_line}; the servers gave {server_line}"
                for number, (page_line, server_line) in enumerate(rows, 1)
                if page_line != server_line
            ]
    return tuple(lines)
