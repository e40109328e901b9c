"""Disasters from a seed: disks of a random run of the model, written as files, then lost, cut, or with a bit flipped.

The model knows which writes were acknowledged, so it knows whether a bound is wrong. Whether it is tight is decided by
enumeration: each write that the program calls possible must have a world, in which the disks that are lost or damaged
held other histories of the run, and a quorum had the write.
"""

import random
import shutil
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from checker.recover.bound import Standing
from checker.recover.electorate import Electorate
from checker.recover.evidence import directories_in, disks_in
from checker.recover.recovery import Recovery, recovery_of
from refimpl.disk import epochs, snapshot
from refimpl.disk.logreader import FileScan
from refimpl.disk.txnlog import TxnLog
from refimpl.tree import Tree
from refimpl.wire.txn import encode_txn
from spec.quorum import View, hierarchical_view, majority_view
from spec.tree.apply import apply
from spec.tree.data import OPEN_ACL_UNSAFE
from spec.tree.txns import Change, CreateTxn
from spec.txn import epoch_of, make_zxid
from tests.support.zab_disks import Log, ModelState, Txn, first, steps

QuorumTest = Callable[[frozenset[int]], bool]


class Disaster(NamedTuple):
    """The truth, the view, the disks that are lost, and what happened to each other disk."""

    state: ModelState
    view: View
    lost: frozenset[int]
    damages: dict[int, str]


class Verdict(NamedTuple):
    """Whether the bound is wrong, and whether a smaller one is possible; texts, empty if not."""

    wrong: str
    loose: str
    lost: int
    open: bool


def path_of(txn: Txn) -> str:
    """The znode that a write of the model creates."""
    return f"/e{txn[0]}w{txn[1]}"


def _change(txn: Txn) -> Change:
    return Change(7, txn[1], 1_700_000_000_000, CreateTxn(path_of(txn), b"data", OPEN_ACL_UNSAFE, False, -1))


def view_of(draw: random.Random) -> View:
    """Three to five voters, sometimes in groups with weights."""
    servers = draw.choice([3, 3, 3, 4, 5, 5])
    if servers == 5 and draw.random() < 0.3:
        return hierarchical_view({1: (0, 1, 2), 2: (3, 4)}, {0: 1, 1: 1, 2: 1, 3: 2, 4: 1})
    return majority_view(range(servers))


def run(draw: random.Random, view: View) -> ModelState:
    """A random run of the model."""
    state = first(len(view.voters))
    for _ in range(draw.randint(5, 90)):
        options = list(steps(state, view.contains_quorum, draw.choice([1, 2, 4]), 6))
        if not options:
            break
        # Elections are rarer than the rest, so that histories grow.
        quiet = [option for option in options if len(option.reigns) == len(state.reigns)]
        state = draw.choice(quiet if quiet and draw.random() < 0.93 else options)
    return state


def write(draw: random.Random, home: Path, sid: int, log: Log, current: int, stale: Log) -> None:
    """Write the disk of a server: logs, perhaps snapshots, and epochs.

    Some servers have got a snapshot from a leader, and keep older records: `stale` ones, which their history lacks.
    """
    directory = home / "version-2"
    directory.mkdir(parents=True)
    tree = Tree()
    sent = draw.randint(1, len(log)) if log and draw.random() < 0.25 else 0
    snapshot.save(directory, tree, 0)
    file = TxnLog(directory, preallocation=0)
    before = [*log[: draw.randint(0, sent)], *stale] if sent else []
    for txn in sorted({txn for txn in before if txn < log[sent - 1]}):
        file.append(make_zxid(*txn), encode_txn(make_zxid(*txn), _change(txn)))
    file.commit()
    for place, txn in enumerate(log, start=1):
        zxid = make_zxid(*txn)
        tree.carry_out(apply(tree, zxid, _change(txn)).operations)
        if place == sent:
            snapshot.save(directory, tree, zxid)
        if place <= sent:
            continue
        file.append(zxid, encode_txn(zxid, _change(txn)))
        if draw.random() < 0.15:
            file.commit()
            snapshot.save(directory, tree, zxid)
            file.roll()
        elif draw.random() < 0.2:
            file.commit()
            file.roll()
    file.close()
    epochs.save_accepted(directory, current)
    epochs.save_current(directory, current)
    (home / "myid").write_text(f"{sid}\n")


def damage(draw: random.Random, home: Path) -> str:
    """Cut a log, flip a bit in a log or a snapshot, or remove the epochs; return what was done."""
    directory = home / "version-2"
    logs = sorted(directory.glob("log.*"), key=lambda path: int(path.name[4:], 16))
    kind = draw.choice(["cut", "cut", "flip", "flip", "snapshot", "epochs"])
    if kind == "epochs":
        (directory / "currentEpoch").unlink()
        return "currentEpoch is missing"
    if kind == "snapshot":
        path = draw.choice(sorted(directory.glob("snapshot.*")))
        content = bytearray(path.read_bytes())
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        path.write_bytes(content)
        return f"a bit of {path.name}"
    if not logs:
        return "nothing"
    if kind == "cut":
        path = logs[-1]
        scan = FileScan(path, int(path.name[4:], 16))
        ends = {16, *(record.end for record in scan)}
        size = draw.randrange(path.stat().st_size)
        if size in ends:
            size -= 1  # nobody sees a cut between two records
        path.write_bytes(path.read_bytes()[:size])
        return f"{path.name} is cut at {size}"
    path = draw.choice(logs)
    content = bytearray(path.read_bytes())
    place = draw.randrange(16, len(content))
    content[place] ^= 1 << draw.randrange(8)
    path.write_bytes(content)
    return f"a bit of {path.name} at {place}"


def disaster(seed: int, folder: Path) -> Disaster:
    """Make the disks of a seed below a folder."""
    draw = random.Random(seed)
    view = view_of(draw)
    state = run(draw, view)
    servers = len(state.disks)
    lost = frozenset(draw.sample(range(servers), draw.randint(0, servers - 1)))
    damages = {}
    for sid, disk in enumerate(state.disks):
        if sid in lost:
            continue
        home = folder / f"server-{sid}"
        stale = tuple({txn for other in state.disks for txn in other.log} - set(disk.log))
        write(draw, home, sid, disk.log, disk.current, tuple(draw.sample(sorted(stale), min(len(stale), 2))))
        if draw.random() < 0.4:
            damages[sid] = damage(draw, home)
    return Disaster(state, view, lost, damages)


def recovered(made: Disaster, folder: Path) -> Recovery:
    """The answer of the program for these disks."""
    return recovery_of(disks_in(directories_in([str(folder)])), Electorate((made.view,), ("the model",)))


def verdict(made: Disaster, answer: Recovery) -> Verdict:
    """Compare an answer with the truth, and with the enumeration."""
    histories = {log[:size] for disk in made.state.disks for log in [disk.log] for size in range(len(log) + 1)}
    txns = set(chain.from_iterable(histories))
    kept = {txn for txn in txns if answer.tree.node(path_of(txn)) is not None}
    listed = {
        (epoch_of(line.zxid), line.zxid & 0xFFFFFFFF): doubt.unkept.standing
        for doubt in answer.doubtful
        for line in doubt.transactions
    }
    possible = {txn for txn, standing in listed.items() if standing is Standing.POSSIBLE}
    missing = answer.bound.missing or ()
    lost = made.state.acknowledged - kept
    wrong = []
    if tuple(sorted(kept)) not in histories:
        wrong.append(f"no server ever had the tree {sorted(kept)}")
    for txn in sorted(lost):
        zxid = make_zxid(*txn)
        if txn in listed and txn not in possible:
            wrong.append(f"{txn} was acknowledged, and is called {listed[txn].name}")
        is_limited = any(gap.after < zxid and (gap.before is None or zxid < gap.before) for gap in missing)
        if txn not in listed and not is_limited:
            wrong.append(f"{txn} was acknowledged, and is not in the answer")
    world = _Worlds(made, answer, histories)
    loose = [f"{txn} is called possible, and has no world" for txn in sorted(possible) if not world.has(txn)]
    if missing and not any(world.has(txn) for txn in world.unseen(kept | set(listed))):
        loose.append(f"unknown writes are called possible ({missing}), and have no world")
    return Verdict("; ".join(wrong), "; ".join(loose), len(lost), any(gap.before is None for gap in missing))


class _Worlds:
    """The worlds that look as the disks do: each disk has a history of the run, perhaps with one write more."""

    def __init__(self, made: Disaster, answer: Recovery, histories: Iterable[Log]) -> None:
        self._view = made.view
        self._currents: dict[int, int | None] = {}
        self._options: dict[int, list[Log]] = {}
        top = max((txn[0] for disk in made.state.disks for txn in disk.log), default=0)
        top = max([top, *(disk.current for disk in made.state.disks)])
        longer = {log: list(_longer(log, top + 1)) for log in histories}
        self._domain = [*longer, *chain.from_iterable(longer.values())]
        disks = {disk.sid: disk for disk in answer.disks}
        for sid in range(len(made.state.disks)):
            if sid not in disks:
                self._currents[sid], self._options[sid] = None, self._domain
                continue
            said = disks[sid].survey
            self._currents[sid] = said.current.value
            self._options[sid] = [
                log for log in self._domain if _looks_like(log, made.state.disks[sid].log, said.losses)
            ]

    def unseen(self, seen: set[Txn]) -> Iterator[Txn]:
        """All writes that no disk shows."""
        yield from {txn for log in self._domain for txn in log} - seen

    def has(self, txn: Txn) -> bool:
        """Whether there is a world in which a quorum has this write, and all later epochs begin with it."""
        holders = set()
        for sid, options in self._options.items():
            current = self._currents[sid]
            fitting = [log for log in options if txn in log or all(other[0] <= txn[0] for other in log)]
            if not fitting:
                return False
            if any(txn in log for log in fitting) and (current is None or current >= txn[0]):
                holders.add(sid)
        return self._view.contains_quorum(holders)


def _longer(log: Log, top: int) -> Iterator[Log]:
    """A history with one write more, of its last epoch or of a later one."""
    last = log[-1] if log else (0, 0)
    for epoch in range(max(1, last[0]), top + 1):
        yield (*log, (epoch, last[1] + 1 if epoch == last[0] else 1))


def _looks_like(log: Log, truth: Log, losses: Iterable[object]) -> bool:
    """Whether a history has exactly what a disk shows: all but the lost places."""

    def shown(history: Log) -> list[Txn]:
        return [txn for txn in history if not any(loss.has(make_zxid(*txn)) for loss in losses)]  # type: ignore[attr-defined]

    return shown(log) == shown(truth)


def judged(seed: int, folder: Path) -> tuple[Disaster, Verdict]:
    """Make a disaster, ask the program, and judge its answer; the folder is removed again."""
    try:
        made = disaster(seed, folder)
        if len(made.lost) == len(made.state.disks):
            return made, Verdict("", "", 0, True)
        return made, verdict(made, recovered(made, folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
