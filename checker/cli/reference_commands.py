"""The commands that print reference material: the list of scenarios, proofs, tables and the gallery."""

import argparse
import json
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from checker.command import Command, ExitCode, refused, say, unread_output_discarded
from checker.symbolic.solvers import Solver
from spec.census.defect import KnownDefect, Presence
from spec.census.table import CENSUS
from spec.releases import RELEASES, DefectHistory, SourceChange, fixed_text, is_defect
from spec.text import INT, between
from spec.variants import DESCRIBED, Area, Variant

RELEASE_TABLE, SCHEMA = "releases", "schema"
VOTES, ZAB = "votes", "zab"
BOTH = "both"


def _listing_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "table",
        nargs="?",
        choices=(RELEASE_TABLE, SCHEMA),
        help="releases: the known defects of each release of ZooKeeper; schema: the JSON schema of scenarios",
    )
    parser.add_argument("--json", action="store_true", help="with releases: the table as JSON")


def _listing(options: argparse.Namespace) -> int:
    if options.table == RELEASE_TABLE:
        text, data = releases_report()
        say(json.dumps(data) if options.json else text)
        return int(ExitCode.PASSED)
    if options.table == SCHEMA:
        from checker.scenario.schema import JSON_SCHEMA  # noqa: PLC0415

        say(JSON_SCHEMA.read_text("utf-8"), end="")
        return int(ExitCode.PASSED)
    if options.json:
        return refused("--json prints the table of releases; write list releases --json", ExitCode.COMMAND_LINE)
    from checker.properties import ENSEMBLE_PROPERTIES  # noqa: PLC0415
    from checker.properties.recipes import RECIPE_PROPERTIES  # noqa: PLC0415
    from checker.properties.service import SERVICE_PROPERTIES  # noqa: PLC0415
    from checker.scenario import bundled, load  # noqa: PLC0415

    say("scenarios")
    width = max(len(path.stem) for path in bundled())
    for path in bundled():
        job = load(path)
        expected = job.expected.value if job.expected else ""
        say(f"  {path.stem:<{width}}  {job.grain:<6}  {expected:<8}  {job.name}")
    for registry in (ENSEMBLE_PROPERTIES, SERVICE_PROPERTIES, RECIPE_PROPERTIES):
        say(f"properties of {registry.models}")
        width = max(map(len, registry))
        for name, prop in registry.items():
            say(f"  {name:<{width}}  {prop.kind.value:<11}  {prop.meaning}")
    return int(ExitCode.PASSED)


LISTING = Command(_listing_options, _listing)


def _proofs_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--only",
        choices=(VOTES, ZAB),
        help="votes: quorums and the order of votes; zab: the safety of Zab (default: both)",
    )
    parser.add_argument(
        "--solver",
        choices=(*(solver.value for solver in Solver), BOTH),
        default=Solver.Z3.value,
        help="the solver that has to prove everything (default: z3)",
    )
    parser.add_argument(
        "--seed",
        type=between(0, INT[1]),
        default=0,
        metavar="N",
        help="the random seed of the solver for Zab (default 0)",
    )
    folders = parser.add_mutually_exclusive_group()
    folders.add_argument(
        "--export", type=Path, metavar="DIR", help="write each condition of Zab as an SMT-LIB script, and prove nothing"
    )
    folders.add_argument(
        "--certify", type=Path, metavar="DIR", help="write each condition and statement with a certificate of its proof"
    )
    folders.add_argument(
        "--check-certificates",
        type=Path,
        metavar="DIR",
        help="check the certificates of all conditions and statements; no solver searches",
    )


def _proofs(options: argparse.Namespace) -> int:
    solvers = tuple(Solver) if options.solver == BOTH else (Solver(options.solver),)
    for solver in solvers:
        solver.load()  # a missing one is one line, before anything is printed
    with unread_output_discarded():
        if options.export is not None:
            return _export(options.export)
        if options.certify is not None:
            Solver.CVC5.load()
            return _certificates(options.certify, options.only, is_made=True)
        if options.check_certificates is not None:
            folder = options.check_certificates
            if not folder.is_dir():
                return refused(f"--check-certificates {folder}: it is not a folder", ExitCode.COMMAND_LINE)
            return _certificates(folder, options.only, is_made=False)
        votes = _proofs_of_votes(solvers) if options.only != ZAB else ExitCode.PASSED
        zab = _proofs_of_zab(solvers, options.seed) if options.only != VOTES else ExitCode.PASSED
    return int(votes if votes is not ExitCode.PASSED else zab)


def _export(folder: Path) -> int:
    from checker.symbolic.zab.proof import export  # noqa: PLC0415

    try:
        count = export(folder)
    except OSError as error:
        return refused(f"--export {folder}: no script can be written there ({error})", ExitCode.COMMAND_LINE)
    say(f"{count} scripts are in {folder}; the answer to each is unsat")
    return int(ExitCode.PASSED)


def _proofs_of_votes(solvers: Sequence[Solver]) -> ExitCode:
    from checker.symbolic import cycle_lines, every_proof  # noqa: PLC0415
    from checker.symbolic.proofs import Theorem  # noqa: PLC0415

    proofs = every_proof(solvers)
    for proof in proofs:
        say(f"{proof.RESULT}: {proof.statement}")
    say("\n".join(cycle_lines()))
    return ExitCode.PASSED if all(isinstance(proof, Theorem) for proof in proofs) else ExitCode.SAFETY


def _proofs_of_zab(solvers: Sequence[Solver], seed: int) -> ExitCode:
    from checker.symbolic.zab.proof import answer_lines, exit_code, prove  # noqa: PLC0415

    with _progress("proving Zab") as progress:
        proofs = prove(solvers=solvers, seed=seed, progress=progress)
    say("\n".join(answer_lines(proofs)))
    return ExitCode(exit_code(proofs))


def _certificates(folder: Path, only: str | None, *, is_made: bool) -> int:
    """Make the certificates of all conditions, or check them; print those that have none."""
    from checker.symbolic.certified import all_places, certify, check_certificates  # noqa: PLC0415

    chosen = [place for place in all_places() if only is None or (place.premise is None) == (only == VOTES)]
    with _progress("making certificates" if is_made else "checking certificates") as progress:
        results = (certify if is_made else check_certificates)(folder, chosen, progress)
    failures = [result for result in results if result.failure is not None]
    for result in failures:
        say(f"{'no certificate' if is_made else 'rejected'}: {result.name}: {result.failure}")
    accepted = len(results) - len(failures)
    say(f"{accepted} of {len(results)} conditions have {'a' if is_made else 'an accepted'} certificate in {folder}")
    return int(ExitCode.INCOMPLETE if failures else ExitCode.PASSED)


@contextmanager
def _progress(title: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on the terminal of standard error, for the number of finished tasks and of all."""
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import Progress  # noqa: PLC0415

    # Standard output is flushed before the bar, which goes to standard error.
    sys.stdout.flush()
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, count: bar.update(task, completed=done, total=count)


PROOFS = Command(_proofs_options, _proofs)


def _tables_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="the tables as JSON")


def _tables(options: argparse.Namespace) -> int:
    from checker.cli.tables import report  # noqa: PLC0415

    text, data = report()
    say(json.dumps(data) if options.json else text)
    return int(ExitCode.PASSED)


TABLES = Command(_tables_options, _tables)


def _gallery_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="DIR", help="where the pages are written")
    parser.add_argument(
        "files", nargs="*", type=Path, metavar="FILE", help="shipped scenarios (default: all), whose pages are written"
    )


def _gallery(options: argparse.Namespace) -> int:
    from checker.gallery import write_gallery  # noqa: PLC0415

    try:
        return write_gallery(options.folder, options.files)
    except OSError as error:
        return refused(f"{options.folder}: no page can be written there ({error})", ExitCode.COMMAND_LINE)


GALLERY = Command(_gallery_options, _gallery)


VARIANT_WIDTH = 110
_TITLES = {Area.ZAB: "mutants", Area.RECONFIGURATION: "defects and mutants of dynamic reconfiguration"}
"""The titles of the areas whose variants are not listed as "mutants of" the area."""


def variants_report() -> tuple[str, dict[str, Any]]:
    """All variants as text and as data: the known defects, then the mutants by the area that they change."""
    defects = [variant for variant in DESCRIBED if is_defect(variant)]
    mutants = [variant for variant in DESCRIBED if not is_defect(variant)]
    lines = _variant_lines("known defects", defects)
    for area in Area:
        of_area = [mutant for mutant in mutants if DESCRIBED[mutant].area is area]
        lines += _variant_lines(_TITLES.get(area, f"mutants of {area.value}"), of_area) if of_area else []
    return "\n".join(lines), {
        "defects": [_variant_data(defect) for defect in defects],
        "mutants": [_variant_data(mutant) for mutant in mutants],
    }


def _variant_lines(title: str, variants: list[Variant]) -> list[str]:
    width = max(len(name.value) for name in DESCRIBED)
    lines = [title]
    for variant in variants:
        described = DESCRIBED[variant]
        fixed = f"; fixed: {fixed_text(variant)}" if is_defect(variant) else ""
        wrapped = textwrap.wrap(described.wrong + fixed, VARIANT_WIDTH - width - 4, break_on_hyphens=False)
        lines += [f"  {(variant.value if not n else '').ljust(width)}  {line}" for n, line in enumerate(wrapped)]
    return lines


def _variant_data(variant: Variant) -> dict[str, Any]:
    described = DESCRIBED[variant]
    fixed = fixed_text(variant) if is_defect(variant) else None
    return {"name": variant.value, "wrong": described.wrong, "fixed": fixed, "of": described.area.value}


_CELLS = {Presence.PRESENT: "x", Presence.ABSENT: ".", Presence.UNKNOWN: "?"}


def releases_report() -> tuple[str, dict[str, Any]]:
    """The known defects of each release as text and as data."""
    rows = [("", *map(str, RELEASES))]
    rows += [(name, *(_CELLS[defect.presence(release)] for release in RELEASES)) for name, defect in CENSUS.items()]
    columns = [max(map(len, CENSUS)), *(len(str(release)) for release in RELEASES)]
    lines = ["  ".join(cell.ljust(size) for cell, size in zip(row, columns, strict=True)).rstrip() for row in rows]
    lines += ["", "x: the release has the defect; ?: not established"]
    return "\n".join(lines), {
        "releases": [str(release) for release in RELEASES],
        "defects": [_history_data(defect) for defect in CENSUS.values()],
    }


def _history_data(defect: KnownDefect) -> dict[str, Any]:
    history = defect.history or DefectHistory()
    presences = {str(release): defect.presence(release) for release in RELEASES}
    return {
        "name": defect.name,
        "affected": [release for release, presence in presences.items() if presence is Presence.PRESENT],
        "not_established": [release for release, presence in presences.items() if presence is Presence.UNKNOWN],
        "fixed": [_change_data(change) for change in history.fixed],
        "introduced": [_change_data(change) for change in history.introduced],
        "fixed_by": history.fixed_by or None,
        "reproduced": [str(release) for release in history.reproduced],
    }


def _change_data(change: SourceChange) -> dict[str, str | None]:
    return {"release": None if change.release is None else str(change.release), "commit": change.commit}
