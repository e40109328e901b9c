"""The judgement of a step: its abstract actions are taken in order, and each condition that does not hold is kept.

After the last action, both epochs and the log of the abstract state must be those of the disk of the server. A server
that votes neither by the view of its leader nor by its own file is not a server of abstract Zab, and its steps are
stutters.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from msgspec.structs import replace

from checker.refinement.abstract_steps import NO_REIGN, AbstractAction, AbstractSteps, Broken, Disk, Name
from checker.refinement.finite import FiniteState
from checker.refinement.reigns import Reign, ReignHistory
from spec.txn import Txn, counter_of, format_zxid

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
            begun = state.reigns.find(key)
            if begun is not None and begun.initial != call.txns:
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
