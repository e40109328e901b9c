"""The answer of `recover` as Markdown and as JSON.

The order is that of an operator's questions: the loss, the kept history, the choice, the next steps. Lists are short in
the text and long in the JSON; all figures count everything.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from checker.command import ExitCode
from checker.printable import code, table
from checker.recover.bound import NEVER, Standing
from checker.recover.recovery import Doubtful, Recovery
from checker.recover.transactions import Described
from refimpl.disk.remedies import Others, remedy
from refimpl.disk.survey import NumberFile
from refimpl.tree import ROOT_AGAIN
from spec.text import on_a_line
from spec.txn import epoch_of, make_zxid, zxid_text

SHOWN = 20
"""The number of transactions of one kind in the text."""


def exit_code(recovery: Recovery, *, is_written: bool | None = None) -> ExitCode:
    """The exit code, by the bound of the loss, the known voters and the choice of a side."""
    if recovery.bound.missing is None or (recovery.needs_choice and is_written is False):
        return ExitCode.INCOMPLETE
    return ExitCode.PASSED if _most(recovery) == 0 else ExitCode.SAFETY


def _most(recovery: Recovery) -> int | None:
    """The largest number of acknowledged writes that may be lost; None without a limit."""
    if recovery.bound.missing is None or any(missing.count is None for missing in recovery.bound.missing):
        return None
    missing = sum(missing.count or 0 for missing in recovery.bound.missing)
    return missing + sum(doubt.writes for doubt in recovery.doubtful if doubt.unkept.standing not in NEVER)


def headline(recovery: Recovery) -> str:
    """The answer in one line."""
    most, end = _most(recovery), zxid_text(recovery.history.end)
    if recovery.bound.missing is None:
        return f"The history up to {end} can be kept; what is lost cannot be said, because the voters are unknown"
    if most is None:
        return f"The history up to {end} can be kept; any number of acknowledged writes behind it may be lost"
    if not most:
        return f"The history up to {end} can be kept, and no acknowledged write is lost"
    writes = "1 acknowledged write" if most == 1 else f"up to {most:,} acknowledged writes"
    return f"The history up to {end} can be kept; {writes} may be lost"


def markdown(recovery: Recovery, target: Path | None, written: Sequence[Path]) -> str:
    """The answer for a reader."""
    lines = [f"# {headline(recovery)}", ""]
    lines += _lost(recovery)
    lines += ["", "## What is kept", "", *_kept_history(recovery)]
    if recovery.rivals and any(doubt.unkept.standing not in NEVER for doubt in recovery.doubtful):
        lines += ["", "## The sides", "", *_sides(recovery)]
    lines += ["", "## The disks", "", *_disks(recovery)]
    lines += ["", "## What to do", "", *_steps(recovery, target, written)]
    return "\n".join(lines)


def _names(recovery: Recovery, numbers: Iterable[int]) -> str:
    return ", ".join(recovery.disks[number].name for number in sorted(numbers)) or "no disk"


def _sids(sids: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(sids)))


def _lost(recovery: Recovery) -> list[str]:
    lines = []
    bound, end = recovery.bound, zxid_text(recovery.history.end)
    if not recovery.electorate.views:
        lines.append(
            "Nothing states who votes, so it cannot be said which writes had a quorum. Name the voters with "
            "`--voters 1,2,3` or `--config zoo.cfg`."
        )
    else:
        views = zip(recovery.electorate.views, recovery.electorate.sources, strict=True)
        lines += [f"Voters {_sids(view.voters)}, from {code(source)}." for view, source in views]
        if len(recovery.electorate.views) > 1:
            lines.append(
                "These sources name different voters, so a write counts if a quorum of any of them may have it."
            )
        lost = _sids(recovery.lost)
        lines.append(f"Lost with their disks: {lost}." if lost else "The disks of all voters are here.")
    for missing in bound.missing or ():
        if missing.before is None:
            lines.append(
                f"Disks that are lost or cut can be a quorum. So writes behind {zxid_text(missing.after)}, which no "
                "disk has any more, may have been acknowledged, and nothing limits their number."
            )
        else:
            number = (
                f"{missing.count:,} transactions" if missing.count is not None else "transactions of unknown number"
            )
            lines.append(
                f"{number} between {zxid_text(missing.after)} and {zxid_text(missing.before)} are on no disk any more, "
                "and may have been acknowledged."
            )
    if bound.missing == ():
        lines.append(f"No acknowledged write behind {end} is without a remaining disk that has it.")
    for standing in Standing:
        group = [doubt for doubt in recovery.doubtful if doubt.unkept.standing is standing and doubt.transactions]
        if group:
            count = sum(doubt.unkept.count for doubt in group)
            lines += ["", f"Not kept, {count:,} of this kind: {standing.value}.", ""]
            lines += _listed(recovery, group)
    if not bound.one_electorate and recovery.electorate.views:
        lines += ["", "Two contents have one zxid, or the voters are not the same everywhere: more than one leader may "
                  "have acknowledged writes in one epoch."]  # fmt: skip
    return lines


def _listed(recovery: Recovery, group: Sequence[Doubtful]) -> list[str]:
    rows = [
        (zxid_text(line.zxid), line.kind, _paths(line), _names(recovery, doubt.unkept.disks))
        for doubt in group
        for line in doubt.transactions
    ]
    lines = table(("zxid", "transaction", "path", "on the disks of"), rows[:SHOWN])
    count = sum(doubt.unkept.count for doubt in group)
    return lines if count <= SHOWN else [*lines, "", f"and {count - SHOWN:,} more: `--json` lists them."]


def _paths(line: Described) -> str:
    paths = [path if len(path) <= 200 else path[:200] + "..." for path in line.paths[:4]]
    more = len(line.paths) - len(paths)
    return on_a_line(" ".join(paths)) + (f" and {more} more" if more else "")


def _kept_history(recovery: Recovery) -> list[str]:
    history, base = recovery.history, recovery.history.base
    origin = recovery.disks[base.disk].name
    start = "the empty tree" if base.is_empty else f"{code(f'snapshot.{base.zxid:x}')} of {origin}"
    lines = [
        f"The history begins with {start} and ends with {zxid_text(history.end)}, on the disks of "
        f"{_names(recovery, recovery.holders)}. Its epoch is {history.epoch}.",
        f"Its tree has {_number_of(len(recovery.tree), 'znode')} "
        f"and {_number_of(len(recovery.tree.sessions), 'session')}.",
    ]
    return lines + [f"Note: {on_a_line(note)}." for note in recovery.notes]


def _number_of(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _sides(recovery: Recovery) -> list[str]:
    """Both sides by path: the paths that both have changed, then those that are lost, then the kept ones."""
    kept_changes = _by_path(recovery.rivals)
    other_changes: dict[str, Counter[str]] = {}
    owners: dict[str, set[str]] = {}
    for doubt in recovery.doubtful:
        if doubt.unkept.standing in NEVER:
            continue
        for path, kinds in _by_path(doubt.transactions).items():
            other_changes.setdefault(path, Counter()).update(kinds)
            owners.setdefault(path, set()).add(_names(recovery, doubt.unkept.disks))
    both = sorted(kept_changes.keys() & other_changes.keys())
    rows = [
        (
            path,
            _counted(kept_changes.get(path)),
            _counted(other_changes.get(path)),
            "; ".join(sorted(owners.get(path, ()))),
        )
        for path in (
            *both,
            *sorted(other_changes.keys() - kept_changes.keys()),
            *sorted(kept_changes.keys() - other_changes.keys()),
        )
    ]
    alone = [_number_of(len(side) - len(both), "path") for side in (other_changes, kept_changes)]
    lines = [f"Changed on both sides: {_number_of(len(both), 'path')}; on the other side alone: {alone[0]}; on the kept"
             f" side alone: {alone[1]}.", ""]  # fmt: skip
    lines += table(("path", "kept side", "other side", "other side's disks"), rows[:SHOWN])
    return lines if len(rows) <= SHOWN else [*lines, "", f"and {len(rows) - SHOWN:,} more paths: `--json` lists all."]


def _by_path(lines: Iterable[Described]) -> dict[str, Counter[str]]:
    paths: dict[str, Counter[str]] = {}
    for line in lines:
        for path in line.paths if line.changes else ():
            paths.setdefault(path, Counter())[line.kind] += 1
    return paths


def _counted(kinds: Counter[str] | None) -> str:
    return ", ".join(f"{kind} ({count})" if count > 1 else kind for kind, count in (kinds or {}).items())


def _disks(recovery: Recovery) -> list[str]:
    rows = []
    for number, disk in enumerate(recovery.disks):
        survey = disk.survey
        faults = [
            *survey.faults,
            *(f"{log.name}, offset {log.offset}: {log.fault}" for log in survey.logs if log.fault),
        ]
        faults += [f"{save.name}: {save.fault}" for save in survey.snapshots if save.fault]
        faults += [
            f"{file.name}: {file.fault}" for file in (survey.myid, survey.accepted, survey.current) if file.fault
        ]
        faults += [f"{name}: compressed, and not read" for _, name in survey.compressed_snapshots]
        epochs = f"{_number(survey.accepted)}, {_number(survey.current)}"
        has = "has all that is kept" if number in recovery.holders else ""
        rows.append(
            (disk.directory.name, _number(survey.myid), zxid_text(survey.last_zxid), epochs, has, "; ".join(faults[:4]))
        )
    return table(("directory", "myid", "last zxid", "acceptedEpoch, currentEpoch", "history", "faults"), rows)


def _number(file: NumberFile) -> str:
    return "missing" if file.is_absent else "damaged" if file.value is None else str(file.value)


def _steps(recovery: Recovery, target: Path | None, written: Sequence[Path]) -> list[str]:
    steps = []
    if recovery.needs_choice:
        options = " or ".join(
            f"{code(f'--keep {recovery.disks[min(side)].directory.name}')} (the side of {_names(recovery, side)})"
            for side in _side_choices(recovery)
        )
        steps.append(
            f"Choose a side: each choice loses the writes of the other side. Use {options}; nothing is written before."
        )
    if not recovery.electorate.views:
        steps.append("Name the voters (`--voters` or `--config`): the bound above needs them.")
    if len({view.quorums for view in recovery.electorate.views}) > 1:
        steps.append(
            f"Give every server a file with the voters {_sids(recovery.electorate.members)} before it starts, or name"
            " others with `--config`: with two files, two leaders can serve again."
        )
    if written:
        steps.append(f"Written, durable and read back: {', '.join(code(str(path)) for path in written)}.")
    else:
        where = "--to DIR" if target is None else f"--to {target}"
        steps.append(f"Nothing was written. {code(f'{where} --write')} writes one folder for each server.")
    first = make_zxid(recovery.epoch + 1)
    steps += [
        "Stop every server of this ensemble, and keep all old directories as they are. Never start a server with old "
        "data again, also not one whose lost disk comes back: it would win an election, or bring back other writes.",
        "On each server: move `version-2` of dataDir and of dataLogDir to another place, copy its new folder to "
        f"dataDir (`myid` and `version-2`), and move away {code('zoo.cfg.dynamic.next')} if there is one.",
        "Start all voters, in any order: their disks are equal, so the highest id leads. Then start the observers.",
        f"Check with {code('srvr')} on each server, before clients write: one `Mode: leader`, all others follow; "
        f"`Zxid` is {zxid_text(first)} or higher; `Node count` is {len(recovery.tree) + ROOT_AGAIN}. Sessions of "
        "clients that do not return end after their timeouts, and their ephemeral znodes with them.",
    ]
    return [f"{number}. {step}" for number, step in enumerate(steps, start=1)]


def _side_choices(recovery: Recovery) -> list[frozenset[int]]:
    """The disks of each side that can be kept; those that have all that is kept and more are another side."""
    doubtful = [doubt.unkept for doubt in recovery.doubtful]
    others = {unkept.disks for unkept in doubtful if unkept.standing not in NEVER and unkept.reachable}
    return sorted(filter(None, {recovery.holders.difference(*others), *others}), key=sorted)


def data_of(recovery: Recovery, written: Sequence[Path]) -> dict[str, Any]:
    """The answer for machines. Zxids are hexadecimal, as servers print them."""
    bound = recovery.bound
    return {
        "headline": headline(recovery),
        "kept": {
            "end": zxid_text(recovery.history.end),
            "epoch": recovery.history.epoch,
            "snapshot": None if recovery.history.base.is_empty else zxid_text(recovery.history.base.zxid),
            "snapshot_directory": recovery.disks[recovery.history.base.disk].directory.name,
            "disks": [recovery.disks[number].directory.name for number in sorted(recovery.holders)],
            "znodes": len(recovery.tree),
            "node_count": len(recovery.tree) + ROOT_AGAIN,
            "sessions": len(recovery.tree.sessions),
            "new_epoch": recovery.epoch,
        },
        "voters": [
            {"source": source, "voters": sorted(view.voters), "observers": sorted(view.observers)}
            for view, source in zip(recovery.electorate.views, recovery.electorate.sources, strict=True)
        ],
        "lost_voters": sorted(recovery.lost),
        "may_be_lost": {
            "most": _most(recovery),
            "voters_known": bound.missing is not None,
            "one_electorate": bound.one_electorate,
            "on_no_disk": [
                {
                    "after": zxid_text(missing.after),
                    "before": None if missing.before is None else zxid_text(missing.before),
                    "count": missing.count,
                }
                for missing in bound.missing or ()
            ],
        },
        "not_kept": [
            {
                "first": zxid_text(doubt.unkept.first),
                "last": zxid_text(doubt.unkept.last),
                "count": doubt.unkept.count,
                "writes": doubt.writes,
                "directories": [recovery.disks[number].directory.name for number in sorted(doubt.unkept.disks)],
                "standing": doubt.unkept.standing.name.lower(),
                "transactions": [_line_data(line) for line in doubt.transactions],
            }
            for doubt in recovery.doubtful
        ],
        "kept_beside": [_line_data(line) for line in recovery.rivals],
        "needs_choice": recovery.needs_choice,
        "choices": [recovery.disks[min(side)].directory.name for side in _side_choices(recovery)],
        "notes": list(recovery.notes),
        "disks": [
            {
                "directory": disk.directory.name,
                "sid": disk.sid,
                "last_zxid": zxid_text(disk.survey.last_zxid),
                "last_epoch": epoch_of(disk.survey.last_zxid),
                "accepted_epoch": disk.survey.accepted.value,
                "current_epoch": disk.survey.current.value,
                "damage": None if (damage := disk.survey.damage) is None else damage.name.lower(),
                "remedy": None if damage is None else remedy(damage, _others(recovery)),
            }
            for disk in recovery.disks
        ],
        "written": [str(path) for path in written],
    }


def _others(recovery: Recovery) -> Others:
    return Others.NONE if recovery.electorate.runs_alone else Others.UNKNOWN


def _line_data(line: Described) -> dict[str, Any]:
    return {"zxid": zxid_text(line.zxid), "type": line.kind, "paths": list(line.paths), "changes": line.changes}
