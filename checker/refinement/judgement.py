"""The judgement of a step: its abstract actions are taken in order, and each condition that does not hold is kept.

After the last action, both epochs and the log of the abstract state must be those of the disk of the server. A server
that votes neither by the view of its leader nor by its own file is not a server of abstract Zab, and its steps are
stutters.

One finite state of abstract Zab is the disk of the server that takes a step, and the history variables. The conditions
and effects of `checker.symbolic.zab.actions` are evaluated here with Python's truth values, so that the proof and the
check of the refinement have one definition of each action. Other disks are not needed: no condition of an action reads
one.
"""

import itertools
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from msgspec.structs import replace

from checker.refinement.abstract_steps import (
    NO_REIGN,
    AbstractAction,
    AbstractSteps,
    Broken,
    Disk,
    Name,
    Reign,
    ReignHistory,
    ReignKey,
)
from checker.symbolic.zab.actions import ACTIONS
from checker.symbolic.zab.system import AbstractZab, ZabState
from spec.quorum import Sid
from spec.txn import Txn, counter_of, epoch_of, format_zxid

Quorum = frozenset[Sid]


class FiniteZab(AbstractZab):
    """The rigid part, over the reigns and transactions of one step. A quorum is a set of servers."""

    def __init__(
        self, reigns: ReignHistory, txns: tuple[Txn, ...], sids: frozenset[Sid], acting: ReignKey = NO_REIGN
    ) -> None:
        quorums = {q for reign in reigns.known for _, q in reign.committed}
        elements: dict[str, tuple[Any, ...]] = {
            "node": tuple(sids),
            "reign": tuple(reign.key for reign in reigns.known),
            "txn": txns,
            "quorum": tuple(quorums),
        }

        def every(sorts: str, body: Callable[..., Any]) -> bool:
            return all(body(*chosen) for chosen in itertools.product(*(elements[sort] for sort in sorts.split())))

        def some(sorts: str, body: Callable[..., Any]) -> bool:
            return any(body(*chosen) for chosen in itertools.product(*(elements[sort] for sort in sorts.split())))

        def contains(key: ReignKey, quorum: Quorum) -> bool:
            reign = reigns.find(key)
            return reign is not None and reign.view.contains_quorum(quorum)

        self.all, self.some = every, some
        self.epoch = lambda key: key[0]
        self.server = lambda key: key[1]
        self.commits = self.establishes = contains
        self.member = lambda sid, quorum: sid in quorum
        self.zxid = lambda txn: txn.zxid
        # Reigns may share an epoch; a new transaction is of the one that proposes it.
        by_epoch = {reign.key[0]: reign.key for reign in reigns.known} | {acting[0]: acting}
        self.origin = lambda txn: by_epoch.get(epoch_of(txn.zxid), (epoch_of(txn.zxid), 0))
        self.zero = NO_REIGN

    def every_member(self, q: Quorum, body: Callable[..., Any]) -> bool:
        """The body holds for every server of a quorum."""
        return all(body(sid) for sid in q)


class FiniteState:
    """The state in one step of `sid`; `act` takes an action and keeps the conditions that do not hold in `broken`."""

    def __init__(self, sid: Sid, disk: Disk, reigns: ReignHistory) -> None:
        self.sid, self.disk, self.reigns = sid, disk, reigns
        self.source: ReignKey = NO_REIGN
        self.unbegun: ReignKey = NO_REIGN  # the reign that the next action begins
        self.current = reigns.entered_by(sid, disk.current)
        self.broken: list[Broken] = []

    def act(self, name: str, *arguments: Any, more: tuple[Txn, ...] = ()) -> None:
        """Take an action with these arguments; `more` are transactions that the state does not have yet."""
        conditions = self._step(name, arguments, more)
        self.broken += [(name, condition) for condition, holds in conditions.items() if not holds]

    def holds(self, name: str, *arguments: Any) -> bool:
        """Whether all conditions of an action hold; the state stays."""
        saved = self.disk, self.reigns, self.source, self.current
        conditions = self._step(name, arguments, ())
        self.disk, self.reigns, self.source, self.current = saved
        return all(conditions.values())

    def _step(self, name: str, arguments: tuple[Any, ...], more: tuple[Txn, ...]) -> dict[str, bool]:
        all_txns = {*self.disk.txns, *more}
        for reign in self.reigns.known:
            all_txns.update(reign.initial, reign.history)
        txns = tuple(sorted(all_txns, key=lambda txn: (txn.zxid, str(txn.value))))
        sids = frozenset({self.sid}).union(*(_servers(reign) for reign in self.reigns.known))
        acting = next(
            (argument for argument in arguments if isinstance(argument, tuple) and len(argument) == 2), NO_REIGN
        )
        system = FiniteZab(self.reigns, txns, sids, acting)
        conditions, after = ACTIONS[name].step(system, self._symbols(), *arguments)
        quorums = frozenset(argument for argument in arguments if isinstance(argument, frozenset))
        self._take(after, txns, sids, quorums)
        return conditions

    def _symbols(self) -> ZabState:
        """The symbols of abstract Zab in this state; those that no action reads have one value."""
        reigns, disk, log = self.reigns, self.disk, frozenset(self.disk.txns)
        by_key = {reign.key: reign for reign in reigns.known}
        unknown = Reign((-1, 0), None, 0, (), 0)  # type: ignore[arg-type]

        def of(key: ReignKey) -> Reign:
            return by_key.get(key, unknown)

        return ZabState(
            accepted=lambda _: disk.accepted,
            current=lambda _: self.current,
            log=lambda _, t: t in log,
            last=lambda _: disk.last,
            begun=lambda r: r in by_key and r != self.unbegun,
            promised=lambda n, r: n in of(r).promised,
            established=lambda r: of(r).established,
            via=lambda _: frozenset(),
            initial=lambda r, t: t in of(r).initial,
            initial_last=lambda r: of(r).initial_last,
            began_in=lambda r: (of(r).began_in, 0),
            history=lambda r, t: t in of(r).history,
            history_last=lambda r: of(r).history_last,
            entered=lambda n, r: n in of(r).entered,
            acked=lambda n, r, t: (n, t) in of(r).acked,
            served=lambda r, _: of(r).served,
            committed=lambda r, t, q: (t, q) in of(r).committed,
            source=lambda _: self.source,
            began_from=lambda _: NO_REIGN,
            dead=lambda *_: False,
            low=lambda: 0,
            high=lambda: 0,
            over=lambda r: of(r).over,
            barrier=lambda: NO_REIGN,
            barrier_quorum=frozenset,
            grown=lambda _: False,
            newest=lambda: NO_REIGN,
        )

    def _take(self, after: ZabState, txns: tuple[Txn, ...], sids: frozenset[Sid], quorums: frozenset[Quorum]) -> None:
        """Read the state after an action out of its symbols; a reign serves or commits with one of these quorums."""
        own = self.sid
        current = after.current(own)
        log = tuple(txn for txn in txns if after.log(own, txn))
        disk = Disk(after.accepted(own), current[0], log, after.last(own))
        source = after.source(own)
        reigns = []
        for reign in self.reigns.known:
            key = reign.key
            reigns.append(
                replace(
                    reign,
                    began_in=after.began_in(key)[0],
                    initial=tuple(txn for txn in txns if after.initial(key, txn)),
                    initial_last=after.initial_last(key),
                    history=tuple(txn for txn in txns if after.history(key, txn)),
                    history_last=after.history_last(key),
                    established=after.established(key),
                    promised=frozenset(sid for sid in sids if after.promised(sid, key)),
                    entered=frozenset(sid for sid in sids if after.entered(sid, key)),
                    acked=frozenset((sid, txn) for sid in sids for txn in txns if after.acked(sid, key, txn)),
                    served=reign.served or any(after.served(key, q) for q in quorums),
                    committed=reign.committed
                    | {(txn, q) for q in quorums for txn in txns if after.committed(key, txn, q)},
                )
            )
        self.disk, self.source, self.current = disk, source, current
        self.reigns, self.unbegun = replace(self.reigns, known=tuple(reigns)), NO_REIGN


def _servers(reign: Reign) -> frozenset[Sid]:
    return reign.learners | reign.promised | reign.entered | {reign.key[1]} | {sid for sid, _ in reign.acked}


REMEMBERED = 1 << 18  # judgements
SAME_DISK = "the disk"


class StepJudgement(NamedTuple):
    """The history variables after a step, and the conditions that it breaks, each with its action."""

    reigns: ReignHistory
    broken: tuple[Broken, ...]


@lru_cache(maxsize=REMEMBERED)
def judge(reigns: ReignHistory, steps: AbstractSteps) -> StepJudgement:
    """Take the abstract actions of a step of a server, and remember the judgement, since a search meets it again."""
    return judged_step(reigns, steps)


def judged_step(reigns: ReignHistory, steps: AbstractSteps) -> StepJudgement:
    """Take the abstract actions of a step of a server."""
    last = reigns.last_of(steps.server, steps.before.last)
    state = FiniteState(steps.server, replace(steps.before, last=last), reigns)
    if not _is_outside(reigns, steps):
        for call in steps.calls:
            _take(state, call, steps.after)
        state.broken += _differences(state.disk, steps.after)
        state.reigns = state.reigns.with_last(steps.server, state.disk.last, steps.after.last)
    for call in steps.calls:
        if call.name is Name.FOLLOW:
            state.reigns = _followed(state.reigns, call, steps)
        elif call.name is Name.LEAVE:
            state.reigns = state.reigns.left_by(steps.server)
    return StepJudgement(state.reigns.needed(), tuple(dict.fromkeys(state.broken)))


def _is_outside(reigns: ReignHistory, steps: AbstractSteps) -> bool:
    """The server follows a leader whose view does not have it as a voter."""
    followed = [reigns.find(call.reign) for call in steps.calls]
    return any(r is not None and r.key[1] != steps.server and not r.view.is_voter(steps.server) for r in followed)


def _followed(reigns: ReignHistory, call: AbstractAction, steps: AbstractSteps) -> ReignHistory:
    reign = reigns.find(call.reign)
    return reigns if reign is None else reigns.with_reign(replace(reign, learners=reign.learners | {steps.server}))


def _take(state: FiniteState, call: AbstractAction, after: Disk) -> None:
    """Take one action. Raises nothing: an action of an unknown reign breaks its first condition."""
    own, key, name = state.sid, call.reign, call.name.value
    reign = state.reigns.find(key)
    match call.name:
        case Name.BEGIN:
            _begin(state, call, reign)
        case Name.PROMISE:
            if state.holds(name, own, key):
                state.act(name, own, key)
            else:
                state.act("accept", own, key[0])
        case Name.ESTABLISH:
            state.act(name, key, call.quorum)
            last_reign = state.reigns.find(key)
            if last_reign is not None and last_reign.initial != call.txns:
                state.broken.append((name, "the reign begins with the log of its server"))
            if any(r.established and r.key[0] == key[0] and r.key != key for r in state.reigns.known):
                state.broken.append(("the premise", "quorums that establish one epoch meet"))
        case Name.SYNCHRONISE:
            state.act(name, own, key, _newest(after))
        case Name.BEGIN_BROADCAST:
            state.act(name, key, call.zxid)
        case Name.ENTER:
            if reign is not None and state.disk.last < reign.initial_last <= _highest(reign, after):
                state.act("synchronise", own, key, reign.initial_last)
            state.act(name, own, key)
        case Name.PROPOSE:
            state.act(name, key, call.txns[0], more=call.txns)
        case Name.ACK:
            state.act(name, own, key, _txn(reign, call.zxid))
        case Name.VOID_ACKS:
            if reign is not None and any(sid == call.learner for sid, _ in reign.acked):
                state.act(name, call.learner, key, call.zxid)
        case Name.SERVE:
            state.act(name, key, call.quorum)
        case Name.COMMIT:
            state.act(name, key, _txn(reign, call.zxid), call.quorum)


def _begin(state: FiniteState, call: AbstractAction, reign: Reign | None) -> None:
    """Begin a reign; its elements are empty before, and the action gives them their values."""
    assert call.view is not None
    state.reigns = state.reigns.with_reign(Reign(call.reign, call.view, 0, (), 0))
    state.unbegun = call.reign if reign is None else NO_REIGN
    state.act(call.name.value, call.reign)


def _newest(disk: Disk) -> int:
    """The least possible bound of a log in a history: the zxid of its newest transaction.

    The last zxid of the disk may be higher, since a snapshot may be named "epoch:0", which no transaction has. Any
    other name of a snapshot is that of a transaction, which a scenario need not list.
    """
    newest = disk.txns[-1].zxid if disk.txns else 0
    return max(newest, disk.last) if counter_of(disk.last) else newest


def _highest(reign: Reign, disk: Disk) -> int:
    """The highest zxid up to which a history has no transactions beyond those of a log."""
    newest = _newest(disk)
    return min((txn.zxid - 1 for txn in reign.history if txn.zxid > newest), default=reign.history_last)


def _txn(reign: Reign | None, zxid: int) -> Txn:
    """The transaction of this zxid in a history; one without a value if the history has none."""
    history = () if reign is None else reign.history
    return next((txn for txn in history if txn.zxid == zxid), Txn(zxid, None))


def _differences(abstract: Disk, disk: Disk) -> list[Broken]:
    """The parts of a disk that differ from those of the abstract state."""
    parts = {
        "acceptedEpoch is that of the abstract state": abstract.accepted == disk.accepted,
        "currentEpoch is that of the abstract state": abstract.current == disk.current,
        "the log is that of the abstract state": abstract.txns == disk.txns,
    }
    return [(SAME_DISK, condition) for condition, holds in parts.items() if not holds]


def shown(calls: tuple[AbstractAction, ...]) -> str:
    """The abstract actions of a step for a reader, in order."""
    return ", ".join(f"{call.name.value} {call.reign[0]}{f' {format_zxid(call.zxid)}' if call.zxid else ''}"
                     for call in calls)  # fmt: skip
