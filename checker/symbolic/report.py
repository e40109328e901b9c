"""The answer to "do the quorums of these zoo.cfg files meet?", as text and as data.

Rules:

- This module reads the files, since `spec` reads none. It decodes bytes as ISO 8859-1, like `Properties.load`, which
  accepts any bytes.
- Only the ensemble part of a file matters: dataDir and initLimit may be missing.
- The exit code, the text and the data derive from the same pairs. 0: every quorum of each file meets every quorum of
  every other file; 12: two disjoint quorums exist, and the text names them; 151: a file is unreadable or too large,
  ZooKeeper refuses it, or it has no quorum; 20: the solver found no answer; 2: the command line has no file.

`checker.symbolic.proofs` proves the arithmetic of two majorities.
"""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from checker.symbolic.disjoint import DisjointQuorums, UndecidedError, disjoint_quorums
from checker.user_files import CONFIGURATION, TooLargeError, read_bytes
from spec.config import Config, ConfigError, Problem, parse_zoo_cfg
from spec.quorum import Hierarchical, Majority, Sid, View
from spec.text import on_a_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MEET, BAD_COMMAND, DISJOINT, UNDECIDED, BAD_CONFIGURATION = 0, 2, 12, 20, 151


class QuorumReport(msgspec.Struct, frozen=True):
    """An exit code, the text for a terminal (no newline at its end), and the same as data for `--json`."""

    exit_code: int
    text: str
    data: dict[str, Any]


class ConfigPair(msgspec.Struct, frozen=True):
    """Two files, or one twice, and the disjoint quorums of their views; None is a proof that there are none."""

    a: Config
    b: Config
    disjoint: DisjointQuorums | None


def quorums_command(paths: Sequence[Path]) -> QuorumReport:
    """Compare the views of the given files, each with itself and with every other one.

    The function reads only these files and their dynamic files. It prints nothing, and their
    content raises nothing.
    """
    if not paths:
        return QuorumReport(BAD_COMMAND, "name one zoo.cfg or more", {"verdict": "bad command"})
    configs, problems = _read_all(paths)
    if problems:
        return _bad_configuration(problems)
    try:
        pairs = compare(configs)
    except UndecidedError as error:
        return QuorumReport(UNDECIDED, str(error), {"verdict": "undecided", "reason": str(error)})
    disjoint = any(pair.disjoint for pair in pairs)
    data = {
        "verdict": "disjoint quorums" if disjoint else "every two quorums meet",
        "files": [_file_data(config) for config in configs],
        "pairs": [_pair_data(pair) for pair in pairs],
    }
    return QuorumReport(DISJOINT if disjoint else MEET, _answer_text(configs, pairs), data)


def compare(configs: Sequence[Config]) -> list[ConfigPair]:
    """Compare each configuration with itself, and then each two of them."""
    couples = [*((config, config) for config in configs), *combinations(configs, 2)]
    return [ConfigPair(a, b, disjoint_quorums(a.view, b.view)) for a, b in couples]


def _answer_text(configs: Sequence[Config], pairs: Iterable[ConfigPair]) -> str:
    """Return the views, the warnings, and a paragraph for each pair.

    The comparison of a file with itself appears only for a single file, and for a file with disjoint quorums.
    """
    width = max(len(config.file) for config in configs)
    lines = [f"{config.file:<{width}}  {view_text(config.view)}" for config in configs]
    lines += [on_a_line(f"warning: {warning}") for config in configs for warning in config.warnings]
    shown_pairs = (pair for pair in pairs if pair.a is not pair.b or pair.disjoint or len(configs) == 1)
    return "\n".join(["\n".join(lines), *(f"\n{_pair_text(pair, width)}" for pair in shown_pairs)])


def view_text(view: View) -> str:
    """Return a view on one line: the voters, the rule for a quorum, the observers."""
    count = len(view.voters)
    parts = [f"{count} voter{'s' * (count != 1)} {set_text(view.voters)}", f"quorum: {_rule_text(view)}"]
    if view.observers:
        parts.append(f"observers {set_text(view.observers)}")
    if view.version:
        parts.append(f"version {view.version:x}")
    return ", ".join(parts)


def _pair_text(pair: ConfigPair, width: int = 0) -> str:
    """Return the answer for two files, and its reason: two disjoint quorums, or the proof that any two meet."""
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
    """Return a set of servers in ascending order: {1, 2, 3}."""
    return "{" + ", ".join(map(str, sorted(servers))) + "}"


def _rule_text(view: View) -> str:
    quorums = view.quorums
    if isinstance(quorums, Majority):
        return f"any {quorums.quorum_size}" if view.voters else "none"
    weights = dict(quorums.weights)
    groups = "; ".join(
        f"group {gid}: " + ", ".join(f"{sid} weighs {weights[sid]}" for sid in servers)
        for gid, servers in quorums.groups
    )
    count = quorums.groups_to_exceed() + 1
    return f"more than half of the weight in {count} group{'s' * (count > 1)} ({groups})"


def _arithmetic(a: View, b: View) -> str | None:
    """Return the numbers behind the answer for two majorities; None for other quorum systems."""
    if not (isinstance(a.quorums, Majority) and isinstance(b.quorums, Majority) and a.voters and b.voters):
        return None
    left, right, union = a.quorums.quorum_size, b.quorums.quorum_size, len(a.voters | b.voters)
    comparison = "more than" if left + right > union else "not more than"
    return f"{left} + {right} = {left + right} is {comparison} the {union} voters of the two together"


def _read_all(paths: Sequence[Path]) -> tuple[list[Config], list[Problem]]:
    configs: list[Config] = []
    problems: list[Problem] = []
    for path in paths:
        beside = _DynamicFiles(path)
        try:
            text = _text(path)
        except (OSError, ValueError):
            problems.append(Problem(str(path), 0, "the file cannot be read", "name a readable zoo.cfg"))
            continue
        except TooLargeError as error:
            problems.append(Problem(str(path), 0, str(error), "name a zoo.cfg"))
            continue
        try:
            config = parse_zoo_cfg(text, str(path), read=beside, complete=False, locate=beside.locate)
        except TooLargeError as error:
            problems.append(Problem(str(path), 0, f"its dynamic file is too large: {error}", "name a dynamic file"))
            continue
        except ConfigError as error:
            problems.extend((*error.problems, *error.warnings))
            continue
        configs.append(config)
        # Without any quorum, every two quorums meet trivially, and that would not answer the question.
        if not config.view.contains_quorum(config.view.voters):
            problem = "all its servers together are not a quorum, so there is nothing to compare"
            problems.append(
                Problem(str(path), 0, problem, "name a zoo.cfg with server.N lines, and weights above zero")
            )
    return configs, problems


class _DynamicFiles:
    """Reads a dynamic file at the path in the zoo.cfg, or in the folder of the zoo.cfg."""

    def __init__(self, zoo_cfg: Path) -> None:
        self._folder = zoo_cfg.parent

    def __call__(self, name: str) -> str | None:
        """Return the text of the file, or None. Raises TooLargeError."""
        try:
            return _text(Path(self.locate(name)))
        except (OSError, ValueError):
            return None

    def locate(self, name: str) -> str:
        """Return the path of the file on this machine."""
        try:
            is_file = Path(name).is_file()
        except ValueError:
            is_file = False
        return name if is_file else str(self._folder / Path(name).name)


def _text(path: Path) -> str:
    """Read a file. Raises OSError, ValueError and TooLargeError."""
    return read_bytes(path, CONFIGURATION).decode("iso-8859-1")


def _bad_configuration(problems: list[Problem]) -> QuorumReport:
    data = {"verdict": "bad configuration", "problems": [msgspec.to_builtins(p) for p in problems]}
    return QuorumReport(BAD_CONFIGURATION, "\n".join(on_a_line(str(problem)) for problem in problems), data)


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


def _pair_data(pair: ConfigPair) -> dict[str, Any]:
    disjoint = pair.disjoint
    return {
        "a": pair.a.file,
        "b": pair.b.file,
        "meet": disjoint is None,
        "disjoint": None if disjoint is None else {"a": sorted(disjoint.a), "b": sorted(disjoint.b)},
        "rule": _arithmetic(pair.a.view, pair.b.view),
    }
