"""Four families of messages that must not arrive in the state of their receiver.

The specification reports such a message where it is read (`spec.zab.events.Unexpected`), and then continues like a real
server. Each family is examined while some server waits for messages of its kind.

Source: the TLA+ specifications of ZooKeeper: bad states, acks, proposals, commits.
"""

from __future__ import annotations

from collections.abc import Callable

from checker.engine import TRIVIAL, Finding
from checker.models.ensemble.history import HistoryPart
from checker.models.ensemble.setup import Setup
from checker.properties.projections import SyncObligation, reads_of, sync_obligation, zab_invariant
from checker.properties.registry import Answer, Condition
from spec.quorum import Sid
from spec.txn import format_zxid
from spec.zab.events import MessageKind, Unexpected

Obligations = dict[Sid, SyncObligation]


@zab_invariant(
    "NoBadState",
    meaning="A packet arrives only in a phase where its receiver expects it",
    premise="Some server leads or follows, from its decision on",
    source="TLA+, bad states",
    notes="It also covers the ACK of UPTODATE: a serving learner whose ACK of UPTODATE the leader has read has "
    "applied the last transaction with which the leader began, or a later one.",
)
def _no_bad_state(setup: Setup) -> Condition:
    return _family(setup, MessageKind.STATE, lambda _: True, also=_served_too_early)


@zab_invariant(
    "NoBadAck",
    meaning="The first ACK of a learner is its ACK of NEWLEADER, and each later ACK belongs to a proposal",
    premise="Some leader has sent a learner everything up to NEWLEADER",
    source="TLA+, bad acks",
    notes="Until a leader serves, the first ACK that it reads from a learner is that of NEWLEADER. An ACK that it "
    "reads while it serves and a proposal is outstanding belongs to UPTODATE, to a committed proposal, or to an "
    "outstanding one.",
)
def _no_bad_ack(setup: Setup) -> Condition:
    return _family(setup, MessageKind.ACK, lambda each: each.awaits_acks)


@zab_invariant(
    "NoBadProposal",
    meaning="Proposals arrive without a gap",
    premise="Some learner has received DIFF, TRUNC or SNAP",
    source="TLA+, bad proposals. `Learner.enforceContinuousProposal`",
    notes="While a learner synchronises, each PROPOSAL after the first has the next zxid or one of a later epoch. "
    "While it serves, each has the next zxid of its epoch or is the first of a later one.",
)
def _no_bad_proposal(setup: Setup) -> Condition:
    return _family(setup, MessageKind.PROPOSAL, lambda each: each.awaits_proposals)


@zab_invariant(
    "NoBadCommit",
    meaning="A COMMIT belongs to the oldest proposal that is not committed",
    premise="Some learner has a proposal that is not committed",
    source="TLA+, bad commits",
    notes="Each COMMIT that a learner reads finds a proposal that is not committed. While the learner serves, and "
    "between TRUNC or SNAP and NEWLEADER, this is the oldest such proposal.",
)
def _no_bad_commit(setup: Setup) -> Condition:
    return _family(setup, MessageKind.COMMIT, lambda each: each.awaits_commits)


def _family(
    setup: Setup,
    family: MessageKind,
    awaits: Callable[[SyncObligation], bool],
    also: Callable[[Obligations], Finding | None] = lambda _: None,
) -> Condition:
    def check(unexpected: tuple[Unexpected, ...], *views: SyncObligation | str) -> Answer:
        found = next((each for each in unexpected if each.family is family), None)
        if found is not None:
            values = (("server", found.server), ("message", found.what))
            return Finding(f"an unexpected {family.value} message arrived", values)
        duties = {sid: each for sid, each in zip(setup.sids, views, strict=True) if isinstance(each, SyncObligation)}
        if not any(awaits(each) for each in duties.values()):
            return TRIVIAL
        return also(duties)

    return Condition(reads_of(setup, sync_obligation, HistoryPart.UNEXPECTED), check)


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
