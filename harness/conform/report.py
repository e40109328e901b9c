"""The report of a run, as text for a terminal, as Markdown and as JUnit XML.

Rules of this module: the three forms have the same contents; answers are shown as recorded, for both sides. What a
server says is never markup.

Source: the JUnit schema that Jenkins and GitLab read (testsuites, testsuite, testcase, failure, skipped).
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from xml.etree import ElementTree

from checker.printable import escaped, fenced, table
from checker.report.junit import xml_text
from harness.conform.comparison import Difference
from harness.conform.kills.run import KillsResult
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
