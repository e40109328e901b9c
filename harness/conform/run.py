"""One run of the comparison: all named cases, the table of opcodes, and random scripts.

A script for an older server is in the opcodes that it has, where an older opcode does the same: its dialect. Servers
before 3.5.0 have no create2, and servers before 3.6.0 no setWatches2. Scripts prepare their znodes by create2,
so without a translation almost every script would end at its first command.

Delta debugging finds the smallest script, as far as the search goes, that still differs.

Rules of this module:

- Each script runs at the oracle and at the tested server, one after the other, below fresh znodes of the same path.
- A difference that was seen once in this run is repeated before it is reported: `unstable` marks one that was gone. A
  script with a late answer is repeated too.
- A random script with an unexplained difference is minimised, unless a difference with the same signature was found
  before; then it is only counted.
- A dialect changes the request, never its effect: create2 of the four old modes becomes create, and setWatches2 without
  persistent watches becomes setWatches. Both sides run the same translated script.
- A case about such an opcode itself is verbatim, and is not translated.
- Delta debugging removes parts only, and their order stays: first large pieces of the script, then single commands, at
  last single operations of a multi. The result is 1-minimal unless the bound on the number of attempts ends the search.
- `differs` runs a candidate on both sides, each time below a fresh root, and decides.

Source: `ZooDefs.OpCode`; ZOOKEEPER-1297 (create2), ZOOKEEPER-1416 (setWatches2); A. Zeller and R. Hildebrandt,
Simplifying and Isolating Failure-Inducing Input, 2002 (ddmin).
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from enum import Enum
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from harness import commands as c
from harness.conform import opcodes
from harness.conform.cases import session_cases, tree_cases
from harness.conform.cases.case import Case
from harness.conform.comparison import Difference, differences
from harness.conform.kills.run import KillsResult
from harness.conform.known_causes import SILENT_ONCE
from harness.conform.mismatch import not_supported
from harness.conform.protocol import NO_ANSWER
from harness.conform.random_scripts import ScriptGenerator
from harness.conform.servers import Side

SET_WATCHES, SET_WATCHES2 = 101, 105


def translated(script: c.Script, missing: Collection[int]) -> c.Script:
    """The script without the opcodes of `missing`, as far as older ones do the same."""
    return tuple(_older(command, missing) for command in script) if missing else script


def _older(command: c.Command, missing: Collection[int]) -> c.Command:
    match command:
        case c.Create(by=c.CREATE2, flags=flags) if c.CREATE2 in missing and flags <= c.EPHEMERAL_SEQUENTIAL:
            return replace(command, by=c.CREATE)
        case c.Multi(parts=parts):
            return replace(command, parts=tuple(_older(part, missing) for part in parts))
        case c.SetWatches(persistent=(), recursive=()) if SET_WATCHES2 in missing:
            return replace(command, by=SET_WATCHES)
        case _:
            return command


ATTEMPTS = 200


def minimised(script: c.Script, differs: Callable[[c.Script], bool], attempts: int = ATTEMPTS) -> c.Script:
    """Drop commands while the script differs; `script` itself must differ."""
    budget = iter(range(attempts))

    def still(candidate: c.Script) -> bool:
        return next(budget, None) is not None and differs(candidate)

    smaller = _without_commands(script, still)
    while (reduced := next((multi for multi in _smaller_multis(smaller) if still(multi)), None)) is not None:
        smaller = reduced
    return smaller


def _without_commands(script: c.Script, still: Callable[[c.Script], bool]) -> c.Script:
    size = len(script) // 2
    while size >= 1:
        place, dropped = 0, False
        while place < len(script):
            candidate = script[:place] + script[place + size :]
            if candidate and still(candidate):
                script, dropped = candidate, True
            else:
                place += size
        if not (size == 1 and dropped):
            size //= 2
    return script


def _smaller_multis(script: c.Script) -> Iterator[c.Script]:
    """The scripts with one operation less in one multi or multiRead."""
    for number, command in enumerate(script):
        if isinstance(command, c.Multi | c.MultiRead):
            for place in range(len(command.parts)):
                parts = command.parts[:place] + command.parts[place + 1 :]
                yield (*script[:number], msgspec.structs.replace(command, parts=parts), *script[number + 1 :])


CASES: tuple[Case, ...] = (*tree_cases.CASES, *session_cases.CASES)
AREAS = tuple(dict.fromkeys(case.area for case in CASES))


class Status(Enum):
    """The result of a case."""

    PASSED = "passed"
    EXPLAINED = "explained"
    DIFFERS = "differs"
    NOT_SUPPORTED = "not supported"


class CaseResult(NamedTuple):
    """A case with its differences; `unstable` if a repetition did not show them."""

    case: Case
    differences: tuple[Difference, ...]
    unstable: bool = False

    @property
    def status(self) -> Status:
        """Passed, or the worst of its differences; a refused opcode counts as not supported, whatever its cause."""
        if not self.differences:
            return Status.PASSED
        if not_supported(self.differences[-1].mismatch):
            return Status.NOT_SUPPORTED
        return Status.EXPLAINED if all(difference.explained for difference in self.differences) else Status.DIFFERS

    @property
    def is_finding(self) -> bool:
        """Whether a difference is left that no release and no meant difference explains."""
        return not all(difference.explained for difference in self.differences)


class RandomFinding(NamedTuple):
    """The minimised script of a difference, and how many random scripts showed one like it."""

    result: CaseResult
    times: int


class ConformResult(NamedTuple):
    """Everything that a run found."""

    release: str | None
    cases: tuple[CaseResult, ...]
    opcodes: tuple[opcodes.OpcodeRow, ...]
    random_count: int
    seed: int
    random: tuple[RandomFinding, ...]
    kills: KillsResult | None = None

    @property
    def findings(self) -> tuple[CaseResult, ...]:
        """The cases and random scripts with a difference that is not explained."""
        results = (*self.cases, *(script.result for script in self.random))
        return tuple(result for result in results if result.is_finding)

    @property
    def unexplained(self) -> int:
        """The number of cases, random scripts and opcodes with a difference that is not explained."""
        return len(self.findings) + sum(row.is_finding for row in self.opcodes)

    @property
    def is_equal(self) -> bool:
        """Whether no case, no random script and no opcode has an unexplained difference, and the kills lost nothing."""
        return not self.unexplained and (self.kills is None or self.kills.passed)

    def supports(self, opcode: int) -> bool:
        """Whether the tested server has an opcode of the table."""
        return any(row.opcode == opcode and row.tested is opcodes.Support.SUPPORTED for row in self.opcodes)


class Bench(NamedTuple):
    """The two sides, the release of the tested one if it is known, and the display of progress."""

    oracle: Side
    tested: Side
    release: str | None
    progress: Callable[[str], None]

    def compare(self, script: c.Script, exact: bool = False) -> tuple[Difference, ...]:
        """Run a script at both sides."""
        expected = self.oracle.run(script)
        return tuple(differences(self.tested.run(script), expected, exact, self.release))


def measure(bench: Bench, areas: Sequence[str], count: int, seed: int, waiting: Sequence[Case] = ()) -> ConformResult:
    """Run the cases of these areas, the table of opcodes and `count` random scripts. Raises ServerError, OSError.

    `waiting` are cases that take long, in addition. Scripts are translated for a server that lacks opcodes.
    """
    table = tuple(_opcode_rows(bench))
    missing = frozenset(row.opcode for row in table if row.is_missing)
    chosen = [_in_dialect(case, missing) for case in (*(case for case in CASES if case.area in areas), *waiting)]
    results: list[CaseResult] = []
    for number, case in enumerate(chosen, 1):
        bench.progress(f"case {number} of {len(chosen)}: {case.area}, {case.name}")
        results.append(_result(bench, case))
    randoms = tuple(_random(bench, count, seed, missing))
    return ConformResult(bench.release, tuple(results), table, count, seed, randoms)


def _in_dialect(case: Case, missing: frozenset[int]) -> Case:
    """The case in older opcodes, as far as these do the same, unless it is about an opcode itself."""
    return case if case.verbatim else case._replace(script=translated(case.script, missing))


def _result(bench: Bench, case: Case) -> CaseResult:
    results = bench.compare(case.script, case.exact)
    late = tuple(row for row in results if row.mismatch.late)
    if not late and all(row.explained for row in results):
        return CaseResult(case, results)
    if again := bench.compare(case.script, case.exact):
        return CaseResult(case, (*late, *again))
    silent = (row._replace(cause=SILENT_ONCE) if row.mismatch.tested == NO_ANSWER else row for row in results)
    return CaseResult(case, late or tuple(silent), unstable=True)


def _opcode_rows(bench: Bench) -> Iterator[opcodes.OpcodeRow]:
    for opcode, name in opcodes.rows():
        bench.progress(f"opcode {opcode}: {name}")
        script = opcodes.probe(opcode)
        expected = opcodes.support(bench.oracle.run(script))
        yield opcodes.row(opcode, name, opcodes.support(bench.tested.run(script)), expected, bench.release)


def _random(bench: Bench, count: int, seed: int, missing: frozenset[int]) -> list[RandomFinding]:
    generator = ScriptGenerator(seed)
    findings: dict[object, RandomFinding] = {}
    for number in range(1, count + 1):
        bench.progress(f"random script {number} of {count}")
        script = translated(generator.script(number), missing)
        result = _result(bench, Case("random scripts", f"random script {number}", script))
        if not result.differences:
            continue
        key = result.differences[-1].signature
        if key in findings:
            findings[key] = findings[key]._replace(times=findings[key].times + 1)
            continue
        findings[key] = RandomFinding(result if result.unstable else _minimised(bench, result, key), 1)
    return list(findings.values())


def _minimised(bench: Bench, result: CaseResult, signature: object) -> CaseResult:
    """The result of the smallest script with a difference of this signature; the given one if that differs no more."""
    case, attempts = result.case, 0

    def differs(candidate: c.Script) -> bool:
        nonlocal attempts
        attempts += 1
        bench.progress(f"{case.name}: minimised from {len(case.script)} commands, attempt {attempts}")
        return any(difference.signature == signature for difference in bench.compare(candidate))

    smaller = _result(bench, case._replace(script=minimised(case.script, differs)))
    return smaller if smaller.differences else result
