"""Four families of messages that must not arrive in the state of their receiver.

The specification reports such a message where it is read (`spec.zab.events.Unexpected`), and then continues like a real
server. Each family is examined while some server waits for messages of its kind.

Source: the TLA+ specifications of ZooKeeper: bad states, acks, proposals, commits.
"""

from __future__ import annotations

from collections.abc import Callable

from checker.engine import TRIVIAL, Finding, Property
from checker.engine.model import Trivial
from checker.models.ensemble.history import HistoryPart
from checker.models.ensemble.setup import Setup
from checker.properties.projections import SyncObligation, reads_of, sync_obligation
from spec.quorum import Sid
from spec.txn import format_zxid
from spec.zab.events import MessageKind, Unexpected

Answer = Finding | Trivial | None
Obligations = dict[Sid, SyncObligation]


def no_bad_state(setup: Setup) -> Property:
    """A packet arrives in its phase, and the work that UPTODATE requests is done when its ACK is read."""
    meaning = "packets arrive in the phase they are meant for, and an ACK of UPTODATE means that all before is applied"
    return _family(setup, "NoBadState", MessageKind.STATE, lambda _: True, meaning, also=_served_too_early)


def no_bad_ack(setup: Setup) -> Property:
    """The first ACK of a learner is the ACK of NEWLEADER, and each later ACK belongs to a proposal."""
    meaning = "the first ACK of a learner is that of NEWLEADER, and each later one is of something proposed"
    return _family(setup, "NoBadAck", MessageKind.ACK, lambda each: each.awaits_acks, meaning)


def no_bad_proposal(setup: Setup) -> Property:
    """Proposals arrive without a gap."""
    meaning = "a learner receives proposals in the order of their zxids, without a gap"
    return _family(setup, "NoBadProposal", MessageKind.PROPOSAL, lambda each: each.awaits_proposals, meaning)


def no_bad_commit(setup: Setup) -> Property:
    """A COMMIT belongs to the oldest proposal that is not committed."""
    meaning = "a COMMIT is of the oldest proposal that its receiver has not committed yet"
    return _family(setup, "NoBadCommit", MessageKind.COMMIT, lambda each: each.awaits_commits, meaning)


def _family(
    setup: Setup,
    name: str,
    family: MessageKind,
    awaits: Callable[[SyncObligation], bool],
    meaning: str,
    also: Callable[[Obligations], Finding | None] = lambda _: None,
) -> Property:
    def check(unexpected: tuple[Unexpected, ...], *views: SyncObligation | str) -> Answer:
        found = next((each for each in unexpected if each.family is family), None)
        if found is not None:
            values = (("server", found.server), ("message", found.what))
            return Finding(f"an unexpected {family.value} message arrived", values)
        duties = {sid: each for sid, each in zip(setup.sids, views, strict=True) if isinstance(each, SyncObligation)}
        if not any(awaits(each) for each in duties.values()):
            return TRIVIAL
        return also(duties)

    return Property(name, reads_of(setup, sync_obligation, HistoryPart.UNEXPECTED), check, meaning=meaning)


def _served_too_early(duties: Obligations) -> Finding | None:
    """A leader has read an ACK of UPTODATE from a follower that has not applied the leader's initial transactions."""
    for sid, leader in duties.items():
        for learner in leader.served:
            own = duties.get(learner)
            behind = own is not None and (own.leader, own.epoch) == (sid, leader.epoch) and own.applied is not None
            if own is not None and behind and (own.applied or 0) < leader.initial:
                return Finding(
                    "a leader has read an ACK of UPTODATE from a server that has not applied what came before",
                    (
                        ("leader", sid),
                        ("server", learner),
                        ("applied up to", format_zxid(own.applied or 0)),
                        ("the leader began with", format_zxid(leader.initial)),
                    ),
                )
    return None
