"""Certificates of every condition of Zab and of every statement on quorums and votes: to make, and to check them.

A certificate is a file `PREMISE/PLACE.GOAL.certificate`, or `votes/STATEMENT.NUMBER.certificate`. The check exports
each condition anew and reads its certificate, so it is about the conditions of this version and not of the folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from checker.certificates.proof import check
from checker.certificates.terms import RejectedError
from checker.symbolic import every_proof
from checker.symbolic.certify import UncertifiedError, certificate
from checker.symbolic.premise import Premise
from checker.symbolic.proofs import Theorem
from checker.symbolic.zab.conditions import conditions
from checker.symbolic.zab.proof import in_processes, places, script_name
from checker.user_files import TooLargeError, make_folder, read_bytes, slug, write

VOTES = "votes"
SUFFIX = ".certificate"
LARGEST = 1 << 20
"""The limit for a certificate, in bytes; the largest has about 6 kB."""


class ProofPlace(NamedTuple):
    """The conditions at a place under a premise; without a premise, the statements on quorums and votes."""

    premise: Premise | None
    place: str = ""


class Certified(NamedTuple):
    """The result for one condition: its name, and the reason that it has no accepted certificate, or None."""

    name: str
    failure: str | None = None


Progress = Callable[[int, int], None]


def all_places(chosen: Sequence[Premise] = tuple(Premise)) -> tuple[ProofPlace, ...]:
    """Every place, the statements on quorums and votes first."""
    return (ProofPlace(None), *(ProofPlace(premise, place) for premise in chosen for place in places(premise)))


def scripts(place: ProofPlace) -> Iterator[tuple[str, str]]:
    """The name and the script of each condition at a place."""
    if place.premise is not None:
        for condition in conditions(place.premise, (place.place,)):
            yield script_name(place.premise, condition), condition.script
        return
    for proof in every_proof():
        # A statement that z3 has not proved has an empty script, which no certificate fits.
        for number, script in enumerate(proof.scripts if isinstance(proof, Theorem) else ("",), start=1):
            yield f"{VOTES}/{slug(proof.statement)}.{number}", script


def certify(folder: Path, chosen: Sequence[ProofPlace], progress: Progress) -> tuple[Certified, ...]:
    """Write each script and its certificate below a folder. Raises OutputError.

    `progress` is called with the number of places that are done and of all.
    """
    for place in chosen:
        make_folder(folder / (place.premise.label if place.premise else VOTES), f"--certify {folder}")
    return _all(partial(_certify, folder), chosen, progress)


def check_certificates(folder: Path, chosen: Sequence[ProofPlace], progress: Progress) -> tuple[Certified, ...]:
    """Check the certificate of each condition below a folder. `progress` as for `certify`."""
    return _all(partial(_check, folder), chosen, progress)


def _all(
    work: Callable[[ProofPlace], tuple[Certified, ...]], chosen: Sequence[ProofPlace], progress: Progress
) -> tuple[Certified, ...]:
    answers = in_processes(work, chosen, progress)
    return tuple(result for place in chosen for result in answers[place])


def _certify(folder: Path, place: ProofPlace) -> tuple[Certified, ...]:
    results = []
    for name, script in scripts(place):
        file = folder / f"{name}{SUFFIX}"
        write(file.with_suffix(".smt2"), script)
        try:
            write(file, certificate(script))
            results.append(Certified(name, rejection(script, file)))
        except (UncertifiedError, RejectedError) as error:
            results.append(Certified(name, str(error)))
    return tuple(results)


def _check(folder: Path, place: ProofPlace) -> tuple[Certified, ...]:
    return tuple(Certified(name, rejection(script, folder / f"{name}{SUFFIX}")) for name, script in scripts(place))


def rejection(script: str, file: Path) -> str | None:
    """The reason that a file does not certify a script; None if it does."""
    try:
        check(script, read_bytes(file, LARGEST).decode("ascii"))
    except FileNotFoundError:
        return "it has no certificate"
    except (RejectedError, TooLargeError, UnicodeDecodeError) as error:
        return str(error)
    except OSError as error:
        return f"it cannot be read ({error})"
    return None
