"""Answers "do the quorums of these zoo.cfg files meet?" for the person, or the pipeline, who asks.

Rules this module keeps:

- It reads the files, so that `spec` need not. Bytes are read as ISO 8859-1, which is what Java's
  `Properties.load` does, and which cannot fail.
- Only the ensemble part of a file is judged: a file without dataDir or initLimit can still be compared.
- The exit code, the text and the data come from one value, so they cannot disagree. 0: every quorum of each
  file meets every quorum of every other; 12: two disjoint quorums exist, and are shown; 151: a file cannot
  be read, ZooKeeper would refuse it, or it has no quorum at all; 20: the solver gave up; 2: no file named.

Source: the property behind a safe change of configuration; see `checker.symbolic.proofs` for why the
arithmetic of two majorities is right.
"""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from spec.config import Config, ConfigError, Problem, parse_zoo_cfg
from spec.quorum import Hierarchical, Majority, Sid, View

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from checker.symbolic.disjoint import DisjointQuorums

MEET, BAD_COMMAND, DISJOINT, UNDECIDED, BAD_CONFIGURATION = 0, 2, 12, 20, 151


class Answer(msgspec.Struct, frozen=True):
    """An exit code, the text for a terminal (no newline at its end), and the same as data for `--json`."""

    exit_code: int
    text: str
    data: dict[str, Any]


class Pair(msgspec.Struct, frozen=True):
    """Two files, or one twice, and the disjoint quorums of their views; None: proved that there are none."""

    a: Config
    b: Config
    disjoint: DisjointQuorums | None


def quorums_command(paths: Sequence[Path]) -> Answer:
    """Compares the views of the given files, each with itself and with every other one.

    Reads the files and nothing else; prints nothing and raises nothing about their content.
    """
    if not paths:
        return Answer(BAD_COMMAND, "name one zoo.cfg or more", {"verdict": "bad command"})
    configs, problems = _read_all(paths)
    if problems:
        return _bad_configuration(problems)
    from checker.symbolic.disjoint import UndecidedError  # noqa: PLC0415

    try:
        pairs = compare(configs)
    except UndecidedError as error:
        return Answer(UNDECIDED, str(error), {"verdict": "undecided", "reason": str(error)})
    disjoint = any(pair.disjoint for pair in pairs)
    data = {
        "verdict": "disjoint quorums" if disjoint else "every two quorums meet",
        "files": [_file_data(config) for config in configs],
        "pairs": [_pair_data(pair) for pair in pairs],
    }
    return Answer(DISJOINT if disjoint else MEET, answer_text(configs, pairs), data)


def compare(configs: Sequence[Config]) -> list[Pair]:
    """Every two of the configurations, after each of them with itself."""
    # The import waits until somebody asks: z3 is slow to load, and the command line is started often.
    from checker.symbolic.disjoint import disjoint_quorums  # noqa: PLC0415

    couples = [*((config, config) for config in configs), *combinations(configs, 2)]
    return [Pair(a, b, disjoint_quorums(a.view, b.view)) for a, b in couples]


def answer_text(configs: Sequence[Config], pairs: Iterable[Pair]) -> str:
    """The views, what ZooKeeper would warn of, and a paragraph for each pair.

    A file compared with itself is mentioned only if it is the only one, or if its own quorums do not meet.
    """
    width = max(len(config.file) for config in configs)
    lines = [f"{config.file:<{width}}  {view_text(config.view)}" for config in configs]
    lines += [f"warning: {warning}" for config in configs for warning in config.warnings]
    told = (pair for pair in pairs if pair.a is not pair.b or pair.disjoint or len(configs) == 1)
    return "\n".join(["\n".join(lines), *(f"\n{pair_text(pair, width)}" for pair in told)])


def view_text(view: View) -> str:
    """A view in one line: who votes, what makes a quorum, who watches."""
    count = len(view.voters)
    parts = [f"{count} voter{'s' * (count != 1)} {set_text(view.voters)}", f"quorum: {_rule_text(view)}"]
    if view.observers:
        parts.append(f"observers {set_text(view.observers)}")
    if view.version:
        parts.append(f"version {view.version:x}")
    return ", ".join(parts)


def pair_text(pair: Pair, width: int = 0) -> str:
    """The answer for two files: the two disjoint quorums, or that there are none; and why."""
    a, b = pair.a.file, pair.b.file
    rule = _arithmetic(pair.a.view, pair.b.view)
    whose = f"{a} and {b}" if pair.a is not pair.b else f"{a} alone"
    if pair.disjoint is None:
        lines = [f"{whose}: every two quorums meet (proved)"]
        if pair.a is not pair.b:
            lines = [f"every quorum of {a} meets every quorum of {b} (proved)"]
    else:
        lines = [
            f"{whose}: DISJOINT QUORUMS, so two leaders are possible",
            f"  {a:<{width}}  {set_text(pair.disjoint.a)} is a quorum",
            f"  {b:<{width}}  {set_text(pair.disjoint.b)} is a quorum, and shares no server with it",
        ]
    if rule is not None:
        lines.append(f"  because {rule}")
    if pair.disjoint and pair.a.reconfig_enabled and pair.b.reconfig_enabled:
        lines.append("  reconfigEnabled: a server that hears of a newer version adopts it, and may be spared this")
    return "\n".join(lines)


def set_text(servers: Iterable[Sid]) -> str:
    """A set of servers in ascending order: {1, 2, 3}."""
    return "{" + ", ".join(map(str, sorted(servers))) + "}"


def _rule_text(view: View) -> str:
    quorums = view.quorums
    if isinstance(quorums, Majority):
        return f"any {quorums.quorum_size}" if view.voters else "none"
    groups = "; ".join(
        f"group {gid}: " + ", ".join(f"{sid} weighs {dict(quorums.weights)[sid]}" for sid in servers)
        for gid, servers in quorums.groups
    )
    count = quorums.groups_to_exceed() + 1
    return f"more than half of the weight in {count} group{'s' * (count > 1)} ({groups})"


def _arithmetic(a: View, b: View) -> str | None:
    """Why two majorities meet or do not, in numbers; None where the rule is about something else."""
    if not (isinstance(a.quorums, Majority) and isinstance(b.quorums, Majority) and a.voters and b.voters):
        return None
    left, right, union = a.quorums.quorum_size, b.quorums.quorum_size, len(a.voters | b.voters)
    comparison = "more than" if left + right > union else "not more than"
    return f"{left} + {right} = {left + right} is {comparison} the {union} voters of the two together"


def _read_all(paths: Sequence[Path]) -> tuple[list[Config], list[Problem]]:
    configs: list[Config] = []
    problems: list[Problem] = []
    for path in paths:
        text = _text(path)
        if text is None:
            problems.append(Problem(str(path), 0, "the file cannot be read", "name a readable zoo.cfg"))
            continue
        try:
            config = parse_zoo_cfg(text, str(path), read=_Beside(path), complete=False)
        except ConfigError as error:
            problems.extend((*error.problems, *error.warnings))
            continue
        configs.append(config)
        # Where there is no quorum every two of them meet, and that must not be taken for an answer.
        if not config.view.contains_quorum(config.view.voters):
            what = "no set of its servers is a quorum, so there is nothing to compare"
            problems.append(Problem(str(path), 0, what, "name a zoo.cfg with server.N lines"))
    return configs, problems


class _Beside:
    """Reads a dynamic file: where its name says, or beside the zoo.cfg, where copies of both may lie."""

    def __init__(self, zoo_cfg: Path) -> None:
        self._folder = zoo_cfg.parent

    def __call__(self, name: str) -> str | None:
        text = _text(Path(name))
        return text if text is not None else _text(self._folder / Path(name).name)


def _text(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("iso-8859-1")
    except (OSError, ValueError):
        return None


def _bad_configuration(problems: list[Problem]) -> Answer:
    data = {"verdict": "bad configuration", "problems": [msgspec.to_builtins(p) for p in problems]}
    return Answer(BAD_CONFIGURATION, "\n".join(map(str, problems)), data)


def _file_data(config: Config) -> dict[str, Any]:
    view, quorums = config.view, config.view.quorums
    data: dict[str, Any] = {
        "file": config.file,
        "voters": sorted(view.voters),
        "observers": sorted(view.observers),
        "version": view.version,
        "warnings": [msgspec.to_builtins(warning) for warning in config.warnings],
    }
    if isinstance(quorums, Hierarchical):
        data["groups"] = {str(gid): list(servers) for gid, servers in quorums.groups}
        data["weights"] = {str(sid): weight for sid, weight in quorums.weights}
    else:
        data["quorum_size"] = quorums.quorum_size
    return data


def _pair_data(pair: Pair) -> dict[str, Any]:
    disjoint = pair.disjoint
    return {
        "a": pair.a.file,
        "b": pair.b.file,
        "meet": disjoint is None,
        "disjoint": None if disjoint is None else {"a": sorted(disjoint.a), "b": sorted(disjoint.b)},
        "rule": _arithmetic(pair.a.view, pair.b.view),
    }
