"""The report of a run, as text for a terminal, as Markdown and as JUnit XML.

The page of behaviour by release has what several runs found, side by side:

    python -m harness conform --start 3.9.5 --random 20 --json 3.9.5.json
    python -m harness conform --table PAGE --records 3.8.0.json 3.9.5.json [--check]

Rules of this module:

- The three forms of a report have the same contents; answers are shown as recorded, for both sides. What a server says
  is never markup.
- A record is what one run found, without the answers. The tables of the page are computed from records alone, and stand
  between two marks; the rest of the page is left as it is.
- A difference is a known cause. Its cell is *yes* where the run met it, empty where every case that can meet it needs
  an opcode that the server lacks, and *no* otherwise. Causes of servers that are not ZooKeeper are a list.

Source: the JUnit schema that Jenkins and GitLab read (testsuites, testsuite, testcase, failure, skipped).
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree

import msgspec

from checker.printable import escaped, fenced, table
from checker.report.ci_reports import xml_text
from checker.user_files import HISTORY, TooLargeError, read_bytes
from harness.conform.comparison import Difference
from harness.conform.kills.run import KillsResult
from harness.conform.mismatch import CauseKind
from harness.conform.opcodes import Support
from harness.conform.protocol import OPCODES
from harness.conform.run import CaseResult, ConformResult, Status
from harness.session import Answer
from spec.text import on_lines

COLUMNS = tuple(Status)


def area_rows(results: Sequence[CaseResult]) -> list[tuple[str, tuple[int, ...]]]:
    """For each area the number of cases with each status, in the order of `COLUMNS`."""
    counts: dict[str, Counter[Status]] = {}
    for result in results:
        counts.setdefault(result.case.area, Counter())[result.status] += 1
    return [(area, tuple(statuses[status] for status in COLUMNS)) for area, statuses in counts.items()]


def groups(results: Sequence[CaseResult]) -> list[tuple[str, list[CaseResult]]]:
    """The results with differences by the cause of the last difference; without one each result is alone."""
    grouped: dict[str, list[CaseResult]] = {}
    for result in results:
        if result.differences:
            grouped.setdefault(_title(result), []).append(result)
    return list(grouped.items())


def _title(result: CaseResult) -> str:
    cause = result.differences[-1].cause
    if cause is None:
        return f"unexplained: {result.case.area}, {result.case.name}"
    return f"{cause.kind.value}: {cause.name} ({cause.source})"


def summary(result: ConformResult) -> str:
    """The last line: the number of cases, and of unexplained differences."""
    counts = Counter(case.status for case in result.cases)
    cases = ", ".join(f"{counts[status]} {status.value}" for status in COLUMNS if counts[status])
    like = sum(script.times for script in result.random)
    randoms = (
        f"; {result.random_count} random scripts (seed {result.seed}), {like} differ" if result.random_count else ""
    )
    count = result.unexplained
    verdict = f"differences to look at: {count}" if count else "no unexplained difference"
    kills = ""
    if result.kills is not None:
        kills = f"; {len(result.kills.cycles)} kills: {'passed' if result.kills.passed else 'FAILED'}"
    return f"{len(result.cases)} cases: {cases}{randoms}{kills}; {verdict}"


def text(result: ConformResult) -> str:
    """The report for a terminal."""
    return on_lines("\n".join(_text_lines(result)))


def _text_lines(result: ConformResult) -> Iterator[str]:
    width = max((len(area) for area, _ in area_rows(result.cases)), default=0)
    yield f"{'area':<{width}}  " + "  ".join(status.value for status in COLUMNS)
    for area, counts in area_rows(result.cases):
        cells = (f"{count or '.':>{len(status.value)}}" for count, status in zip(counts, COLUMNS, strict=True))
        yield f"{area:<{width}}  " + "  ".join(cells)
    yield ""
    for title, members in groups((*result.cases, *(script.result for script in result.random))):
        yield title
        for member in members:
            yield from ("  " + line for line in _shown(member))
    differing = [row for row in result.opcodes if row.tested is not row.expected]
    same = len(result.opcodes) - len(differing)
    yield f"opcodes: {same} of {len(result.opcodes)} as the oracle"
    for row in differing:
        cause = f"; {row.cause}" if row.cause else ""
        yield f"  {row.opcode} {row.name}: {row.tested.value}; oracle: {row.expected.value}{cause}"
    yield ""
    if result.kills is not None:
        yield from kills_lines(result.kills)
        yield ""
    yield summary(result)


def kills_lines(result: KillsResult) -> Iterator[str]:
    """The run under kills: how often, how long it took to recover, and the judgement of the history."""
    slowest = max((cycle.recovery for cycle in result.cycles), default=0.0)
    led = sum(cycle.led is True for cycle in result.cycles)
    yield f"{len(result.cycles)} kills, {led} of the leader; a write was acknowledged after at most {slowest:.1f} s"
    if result.stuck:
        yield f"it came to a stop: {result.stuck}"
    yield from str(result.findings).splitlines()


def _shown(result: CaseResult) -> Iterator[str]:
    unstable = " (gone when repeated)" if result.unstable else ""
    yield f"{result.case.area}, {result.case.name}{unstable}"
    difference = result.differences[-1]
    for number, command in enumerate(result.case.script[: difference.number + 1]):
        yield f"  {'>' if number == difference.number else ' '} {command}"
    yield from ("    " + line for line in _answers(difference))


def _answers(difference: Difference) -> Iterator[str]:
    mismatch = difference.mismatch
    yield f"server {_outcome(mismatch.tested)}{', only after the request of another session' * mismatch.late}"
    yield f"oracle {_outcome(mismatch.expected)}"
    if mismatch.tested_events != mismatch.expected_events:
        yield f"events of each session: server {_events(mismatch.tested_events)}"
        yield f"                        oracle {_events(mismatch.expected_events)}"


def _outcome(outcome: object) -> str:
    match outcome:
        case Answer(err=0, values=values, zxid=zxid):
            return f"{values}" + (f" zxid {zxid}" if zxid else "")
        case Answer(err=err, values=values, zxid=zxid):
            return f"error {err}" + (f" {values}" if values else "") + (f" zxid {zxid}" if zxid else "")
        case (err, length):
            return f"error {err}, {length} bytes"
        case _:
            return str(outcome)


def _events(events: tuple[object, ...]) -> str:
    return " | ".join(", ".join(map(str, group)) or "-" if isinstance(group, tuple) else str(group) for group in events)


def markdown(result: ConformResult, server: str) -> str:
    """The report as Markdown."""
    lines = [
        f"# Conformance of {escaped(server)}",
        "",
        f"Release: {escaped(str(result.release or 'not known'))}.",
        "",
        escaped(summary(result)) + ".",
        "",
    ]
    rows = [(area, *map(str, counts)) for area, counts in area_rows(result.cases)]
    lines += table(("area", *(status.value for status in COLUMNS)), rows)
    if result.kills is not None:
        lines += ["", "## Under kills", "", *fenced("\n".join(kills_lines(result.kills)), "")]
    lines += ["", "## Differences", ""]
    for title, members in groups((*result.cases, *(script.result for script in result.random))):
        lines += [f"### {escaped(title)}", ""]
        for member in members:
            lines += [*fenced("\n".join(_shown(member)), ""), ""]
    opcodes = [
        (str(row.opcode), row.name, row.tested.value, row.expected.value, row.cause or "") for row in result.opcodes
    ]
    lines += ["## Opcodes", "", *table(("opcode", "name", "server", "oracle", "cause"), opcodes)]
    return "\n".join(lines) + "\n"


def junit(result: ConformResult, server: str) -> str:
    """The report as JUnit XML: an area is a suite; an explained difference and a missing opcode are skipped."""
    root = ElementTree.Element("testsuites", name=f"conformance of {server}")
    by_area: dict[str, list[CaseResult]] = {}
    for result_of_case in (*result.cases, *(script.result for script in result.random)):
        by_area.setdefault(result_of_case.case.area, []).append(result_of_case)
    for area, members in by_area.items():
        findings = [member for member in members if member.is_finding]
        skipped = [member for member in members if member.differences and not member.is_finding]
        suite = ElementTree.SubElement(root, "testsuite", name=area, tests=str(len(members)))
        suite.set("failures", str(len(findings)))
        suite.set("skipped", str(len(skipped)))
        for member in members:
            case = ElementTree.SubElement(suite, "testcase", classname=area, name=member.case.name)
            if member.differences:
                kind = "failure" if member.is_finding else "skipped"
                ElementTree.SubElement(case, kind, message=_title(member)).text = "\n".join(_shown(member))
    _add_opcodes(root, result)
    if result.kills is not None:
        _add_kills(root, result.kills)
    return xml_text(root)


def _add_kills(root: ElementTree.Element, result: KillsResult) -> None:
    suite = ElementTree.SubElement(root, "testsuite", name="kills", tests="1", skipped="0")
    suite.set("failures", str(int(not result.passed)))
    case = ElementTree.SubElement(suite, "testcase", classname="kills", name="the history is linearizable")
    if not result.passed:
        message = result.stuck or result.findings.verdict.value
        ElementTree.SubElement(case, "failure", message=message).text = "\n".join(kills_lines(result))


def _add_opcodes(root: ElementTree.Element, result: ConformResult) -> None:
    suite = ElementTree.SubElement(root, "testsuite", name="opcodes", tests=str(len(result.opcodes)))
    suite.set("failures", str(sum(row.is_finding for row in result.opcodes)))
    suite.set("skipped", str(sum(row.cause is not None for row in result.opcodes)))
    for row in result.opcodes:
        case = ElementTree.SubElement(suite, "testcase", classname="opcodes", name=f"{row.opcode} {row.name}")
        if row.tested is not row.expected:
            message = f"{row.tested.value}; oracle: {row.expected.value}"
            ElementTree.SubElement(case, "failure" if row.is_finding else "skipped", message=message).text = row.cause


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
