"""The manual's page about the command line has every option of every command, and no other.

Its last section is generated from the parsers: a table for each command, and one for each group of options that several
commands share. `REWRITE_GOLDEN=1` writes it; read the diff. Every option in the text before it must exist.
"""

import argparse
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from textwrap import wrap
from typing import NamedTuple

from checker.cli.main import COMMANDS
from checker.cli.options import parser
from checker.command import command_parser

PAGE = Path(__file__).parents[4] / "docs" / "reference-command-line.md"
REWRITE = bool(os.environ.get("REWRITE_GOLDEN"))
HEADING = "## Every option\n"
OTHERS = "## Benchmarks"
"""The section about programs other than the checker."""
PLAIN_GROUPS = ("positional arguments", "options")
"""The titles that argparse gives to options without a group."""
NAMED_PAGE = re.compile(r" \(docs/[^)]*\)")
"""A page of the manual that a group names; omitted, because this page is in the manual."""
HELP = "--help"
WIDTH = 120


class Table(NamedTuple):
    """Some options with a title, and a row for each."""

    title: str
    rows: tuple[str, ...]


def parsers() -> dict[str, argparse.ArgumentParser]:
    """Return the parser of each command by its name; the first one is the parser without a command."""
    called = {f"`quorate {name}`": command_parser(command) for name, command in COMMANDS.items()}
    return {"`quorate nodes`": parser(COMMANDS), **called}


def tables(made: argparse.ArgumentParser) -> Iterator[Table]:
    """The groups of a parser's options."""
    formatter = made._get_formatter()
    for group in made._action_groups:
        rows = tuple(
            f"| `{form(action, formatter)}` | {cell(formatter._expand_help(action) if action.help else '')} |"
            for action in group._group_actions
            if HELP not in action.option_strings and action.help != argparse.SUPPRESS
        )
        if rows:
            yield Table("" if group.title in PLAIN_GROUPS else NAMED_PAGE.sub("", str(group.title)), rows)


def form(action: argparse.Action, formatter: argparse.HelpFormatter) -> str:
    """Return the written form of an option or an argument."""
    takes = cell(formatter._format_args(action, formatter._get_default_metavar_for_optional(action)))
    if not action.option_strings:
        return cell(formatter._format_args(action, formatter._get_default_metavar_for_positional(action)))
    return ", ".join(action.option_strings) + (f" {takes}" if action.nargs != 0 and takes else "")


def cell(text: str) -> str:
    """Text in a table."""
    return " ".join(text.split()).replace("|", "\\|")


def section() -> str:
    """Return the last section of the page, generated from the parsers."""
    of_each = {called: list(tables(made)) for called, made in parsers().items()}
    counted = Counter(table for each in of_each.values() for table in each if table.title)
    shared = [table for table, count in counted.items() if count > 1]
    lines = ["", "Generated from the parsers; `--help` prints the same text.", ""]
    for called, made in parsers().items():
        lines += [f"### {called}", "", *wrap(" ".join((made.description or "").split()), WIDTH), ""]
        own = [table for table in of_each[called] if table not in shared]
        for title in dict.fromkeys(table.title for table in own):
            rows = [row for table in own if table.title == title for row in table.rows]
            lines += [f"{title[:1].upper()}{title[1:]}:", ""] if title else []
            lines += ["| option | meaning |", "| --- | --- |", *rows, ""]
        also = [f"[{table.title}](#{anchor(table)})" for table in of_each[called] if table in shared]
        lines += [f"Also: {', '.join(also)}.", ""] if also else []
    for table in shared:
        lines += [f"### {table.title[:1].upper()}{table.title[1:]}", ""]
        lines += ["| option | meaning |", "| --- | --- |", *table.rows, ""]
    return HEADING + "\n".join(lines[:-1]) + "\n"


def anchor(table: Table) -> str:
    return re.sub(r"[^\w\- ]", "", table.title.lower()).replace(" ", "-")


def test_the_page_has_every_option_of_every_command_as_its_help_tells_it() -> None:
    text = PAGE.read_text(encoding="utf-8")
    before, heading, shown = text.partition(HEADING)
    if REWRITE:
        PAGE.write_text(before + section(), encoding="utf-8")
        return
    assert heading + shown == section(), "REWRITE_GOLDEN=1 writes it"


def test_the_text_before_names_no_option_that_does_not_exist() -> None:
    text = PAGE.read_text(encoding="utf-8").partition(HEADING)[0]
    of_checker = text.partition(OTHERS)[0] + text.partition(OTHERS)[2].partition("\n## ")[2]
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", "".join(re.findall(r"`[^`]*`", of_checker))))
    known = {option for made in parsers().values() for action in made._actions for option in action.option_strings}
    assert named - known == set()


def test_the_text_before_speaks_of_every_command() -> None:
    text = PAGE.read_text(encoding="utf-8").partition(HEADING)[0]
    assert [name for name in COMMANDS if f"quorate {name}" not in text] == []
