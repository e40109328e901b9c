"""The table of behaviour by release: what several runs found, side by side, on a page of the manual.

    python -m harness conform --start 3.9.5 --random 20 --json 3.9.5.json
    python -m harness conform --table PAGE --records 3.8.0.json 3.9.5.json [--check]

Rules of this module:

- A record is what one run found, without the answers. The tables are computed from records alone.
- A difference is a known cause. Its cell is *yes* where the run met it, empty where every case that can meet it needs
  an opcode that the server lacks, and *no* otherwise. Causes of servers that are not ZooKeeper are a list.
- The tables are between two marks on the page; the rest of the page is left as it is.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from checker.user_files import HISTORY, TooLargeError, read_bytes
from harness.conform.mismatch import CauseKind
from harness.conform.opcodes import Support
from harness.conform.protocol import OPCODES
from harness.conform.run import ConformResult, Status

BEGIN, END = "<!-- begin of the tables by release -->", "<!-- end of the tables by release -->"


class CaseRecord(msgspec.Struct, frozen=True):
    """A case of a run: its status, and for each difference the name, the source and the kind of the known cause."""

    status: str
    causes: tuple[tuple[str, str, str], ...] = ()


class ConformRecord(msgspec.Struct, frozen=True):
    """What one run found. `name` heads its column; cases are by area and name, opcodes by number and name.

    `random` are the number of random scripts, the seed, and how many differed; `unexplained` is the number of findings.
    """

    name: str
    cases: dict[str, CaseRecord]
    opcodes: dict[str, tuple[str, str]]
    random: tuple[int, int, int]
    unexplained: int


def record_of(result: ConformResult, name: str) -> ConformRecord:
    """The record of a run."""
    cases = {
        f"{case.case.area}, {case.case.name}": CaseRecord(
            case.status.value,
            tuple(
                (difference.cause.name, difference.cause.source, difference.cause.kind.value)
                for difference in case.differences
                if difference.cause is not None
            ),
        )
        for case in result.cases
    }
    return ConformRecord(
        name=name,
        cases=cases,
        opcodes={f"{row.opcode} {row.name}": (row.tested.value, row.cause or "") for row in result.opcodes},
        random=(result.random_count, result.seed, sum(script.times for script in result.random)),
        unexplained=result.unexplained,
    )


def save(record: ConformRecord, file: Path) -> None:
    """Write a record. Raises OSError."""
    file.write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n")


def load(file: Path) -> ConformRecord:
    """Read a record. Raises OSError, and ValueError with the name of the file."""
    try:
        return msgspec.json.decode(read_bytes(file, HISTORY), type=ConformRecord)
    except (msgspec.DecodeError, UnicodeDecodeError, TooLargeError) as error:
        raise ValueError(f"{file}: not a record of conform --json: {error}") from None


def tables(records: Sequence[ConformRecord]) -> str:
    """The tables as Markdown: opcodes, differences by release, differences of other servers, counts."""
    names = [record.name for record in records]
    lines = [*_head("opcode", *names, "source"), *map(_row, _opcodes(records)), ""]
    releases = [record for record in records if not list(_of_other_servers([record]))]
    names = [record.name for record in releases]
    lines += [*_head("difference from the specification", *names, "source"), *map(_row, _differences(releases)), ""]
    if rows := list(_of_other_servers(records)):
        lines += [*_head("server", "difference from the specification", "source"), *map(_row, rows), ""]
    titles = ("unexplained", "random scripts that differ", "opcodes")
    lines += [*_head("server", *(status.value for status in Status), *titles), *map(_row, map(_counts, records))]
    return "\n".join(lines) + "\n"


def _head(*cells: str) -> list[str]:
    return [_row(cells), _row(["---"] * len(cells))]


def _opcodes(records: Sequence[ConformRecord]) -> Iterator[list[str]]:
    """The opcodes that some server has and another one lacks."""
    for opcode in records[0].opcodes:
        supports = [record.opcodes.get(opcode, ("", ""))[0] for record in records]
        if {Support.SUPPORTED.value} < set(supports):
            source = next((record.opcodes[opcode][1] for record in records if record.opcodes[opcode][1]), "")
            yield [opcode, *("yes" if support == Support.SUPPORTED.value else "no" for support in supports), source]


def _differences(records: Sequence[ConformRecord]) -> Iterator[list[str]]:
    """The known causes of releases, settings, and meant differences, but for opcodes that came later."""
    later = {opcode.came for opcode in OPCODES.values()}
    causes = {
        name: source
        for record in records
        for case in record.cases.values()
        for name, source, _ in case.causes
        if name not in later
    }
    for name, source in sorted(causes.items()):
        yield [name, *(_cell(record, records, name) for record in records), source]


def _of_other_servers(records: Sequence[ConformRecord]) -> Iterator[list[str]]:
    for record in records:
        sources = {
            name: source
            for case in record.cases.values()
            for name, source, kind in case.causes
            if kind == CauseKind.SERVER.value
        }
        yield from ([record.name, name, source] for name, source in sorted(sources.items()))


def _cell(record: ConformRecord, records: Sequence[ConformRecord], cause: str) -> str:
    """Whether a server has a difference that it, or another one, has."""

    def has(case: CaseRecord) -> bool:
        return cause in {name for name, _, _ in case.causes}

    if any(map(has, record.cases.values())):
        return "yes"
    meeting = {name for other_record in records for name, case in other_record.cases.items() if has(case)}
    statuses = {record.cases[name].status for name in meeting if name in record.cases}
    return "" if statuses <= {Status.NOT_SUPPORTED.value} else "no"


def _counts(record: ConformRecord) -> list[str]:
    counts = [sum(case.status == status.value for case in record.cases.values()) for status in Status]
    supported = sum(support == Support.SUPPORTED.value for support, _ in record.opcodes.values())
    count, _, differ = record.random
    return [record.name, *map(str, counts), str(record.unexplained), f"{differ} of {count}", str(supported)]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def with_tables(page: str, records: Sequence[ConformRecord]) -> str:
    """The text of a page with these tables between its marks. Raises ValueError for a page without them."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no place for the tables; write {BEGIN} and {END} into it, on their own lines")
    return f"{before}{BEGIN}\n{tables(records)}{END}{after}"
