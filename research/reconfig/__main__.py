"""`python -m research.reconfig`: measures reconfigurations of real servers, and writes or checks the page of facts.

The table of crashes is computed by the model as well. A measurement of it is compared with the model cell by cell; with
`--model` no server runs, and the model's table takes the place of the measured one.

Exit codes: 0 measured, and equal to the page if one is checked; 1 an error of the servers or a difference; 2 a wrong
command line.
"""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from checker.command import refused
from harness import real
from harness.directories import add_keep, directories, keep_mistake
from harness.processes import ServerError
from harness.releases import MAVEN
from harness.reproduce.by_hand.servers import Bench
from harness.reproduce.gates import compile_shim
from research.reconfig import (
    crash_measured,
    defects,
    errors,
    moments,
    packets,
    promoted,
    resizing,
    suspicions,
    truncated,
)
from research.reconfig.crash_computed import cell_differences, computed
from research.reconfig.crash_table import TABLE_NAME
from research.reconfig.facts import FactTable, Measure, differences, shown, written

NEWEST = MAVEN[-1]
MEASUREMENTS: Mapping[str, Measure] = {
    "packets": packets.measure,
    "moments": moments.measure,
    "errors": errors.measure,
    "resizing": resizing.measure,
    TABLE_NAME: crash_measured.measure,
    "pending": defects.pending,
    "forgotten": defects.forgotten,
    "epochs": defects.epochs,
    "truncated": truncated.measure,
    "promoted": promoted.measure,
    "suspicions": suspicions.measure,
}
GATED = (TABLE_NAME, "truncated")
"""The measurements that hold log writes, for which gcc is needed."""


def main(arguments: list[str] | None = None) -> int:
    """Carry out the command; return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m research.reconfig",
        description="Measure reconfigurations of real servers, and write or check the page of facts.",
    )
    names = ", ".join(MEASUREMENTS)
    parser.add_argument("name", nargs="*", help=f"what to measure (default: all): {names}")
    parser.add_argument("--release", default=NEWEST, help=f"the release of the servers (default: {NEWEST})")
    parser.add_argument("--check", type=Path, metavar="PAGE", help="compare the tables with a page of facts")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="write the tables into a page of facts")
    parser.add_argument(
        "--model", action="store_true", help=f"start no server: compute the table of {TABLE_NAME} by the model"
    )
    add_keep(parser)
    options = parser.parse_args(arguments)
    if reason := _mistake(options) or ("" if options.model else real.available(options.release)):
        return refused(reason, 2)
    if options.model:
        model = computed()
        print(f"{model.name}\n\n{model.markdown()}\n")
        if options.check is None:
            return 0
        on_page = shown(options.check.read_text(encoding="utf-8"), TABLE_NAME)
        if on_page is None:
            print(f"{options.check}: it has no table {TABLE_NAME}", file=sys.stderr)
            return 1
        return _cells_compared(model, on_page, "the page")
    try:
        with directories(options.keep) as folder:
            tables = _measured(tuple(options.name) or tuple(MEASUREMENTS), Bench(folder, options.release))
            return max(_compared(options, tables), _compared_with_model(tables))
    except (ServerError, OSError) as error:
        return refused(str(error), 1)


def _measured(names: tuple[str, ...], bench: Bench) -> list[FactTable]:
    if set(names) & set(GATED):
        bench = Bench(bench.directory, bench.release, compile_shim(bench.directory))
    tables: list[FactTable] = []
    for number, name in enumerate(names, 1):
        print(f"{number} of {len(names)}: {name}", flush=True)
        for table in MEASUREMENTS[name](bench):
            print(f"\n{table.name}\n\n{table.markdown()}\n", flush=True)
            tables.append(table)
    return tables


def _compared(options: argparse.Namespace, tables: list[FactTable]) -> int:
    if options.write is not None:
        options.write.write_text(written(options.write.read_text(encoding="utf-8"), tables), encoding="utf-8")
        print(f"{options.write}: {len(tables)} tables written")
    if options.check is None:
        return 0
    lines = differences(options.check.read_text(encoding="utf-8"), tables)
    for line in lines:
        print(line, file=sys.stderr)
    if not lines:
        print(f"{options.check}: {len(tables)} tables compared, no difference")
    return 1 if lines else 0


def _compared_with_model(tables: list[FactTable]) -> int:
    """Compare a measured table of crashes with the model's; 1 if a cell differs."""
    measured_tables = [table for table in tables if table.name == TABLE_NAME]
    return max((_cells_compared(computed(), table, "the servers") for table in measured_tables), default=0)


def _cells_compared(model: FactTable, other: FactTable, source: str) -> int:
    different = cell_differences(model, other, source)
    for line in different:
        print(line, file=sys.stderr)
    if not different:
        count = sum(map(len, model.rows))
        print(f"{model.name}: the model and {source} agree in all {count} cells of {len(model.rows)} rows")
    return 1 if different else 0


def _mistake(options: argparse.Namespace) -> str | None:
    if options.model and options.write is not None:
        return "--model computes a table, and --write writes measured ones; write --check PAGE"
    if options.model and set(options.name) - {TABLE_NAME}:
        return f"--model computes the table of {TABLE_NAME} alone; leave out the names"
    for name in options.name:
        if name not in MEASUREMENTS:
            return f"no measurement is called {name!r}; write {', '.join(MEASUREMENTS)}"
    for page in (options.check, options.write):
        if page is not None and not page.is_file():
            return (
                f"{page}: no such page; name docs/reference-reconfig-facts.md, or another page with places for tables"
            )
    return keep_mistake(options.keep)


if __name__ == "__main__":
    sys.exit(main())
