"""The bounds of a model of an ensemble, in words, for every report and trace.

Rules of this module: a bound is listed even if it is the default, since "no violation" holds only within it. The parts
of the server that the specification of leading and following omits are listed too, as the modules of `spec.zab` and of
the model state them.
"""

from __future__ import annotations

from checker.models.ensemble import Grain, Setup
from checker.models.ensemble.actions import BUDGETS, UNLIMITED, Section
from checker.scenario.variants import names
from spec.zab.state import ZabRules

_LEFT_OUT = (
    "a whole connection ends by a fault or by a decision of either side: early time-outs are drops of it",
    "a leader notices the loss of a learner when it has read all that the learner sent",
    "the handlers of a leader take no time of their own",
    "acceptedEpoch and currentEpoch are each written in one step with the packet that acknowledges them",
    "a snapshot is taken only of what a SNAP or a TRUNC left in memory",
    "no sessions and no reconfiguration",
)
"""The parts of the real server that the specification of leading and following, and of its connections, omits."""


def bounds_of(setup: Setup, opening: int, *, fast: bool = False) -> tuple[str, ...]:
    """The bounds of a setup; `opening` is the number of steps in a fixed order, `fast` selects the fast network."""
    said = [] if setup.zab else ["epochs and zxids stay as given: only the election is explored"]
    said.append(_at_most(Section.FAULTS, setup) or "no faults")
    if setup.plan:
        said.append(f"the operator's {len(setup.plan)} actions in their order")
    if setup.grain is Grain.FINE:
        said += _channels(setup)
    else:
        said.append("an election is one step, which leaves a leader and a quorum of its view that follows it")
    if setup.zab:
        said += _leading_and_following(setup, setup.zab)
    if setup.prologue:
        said.append("one history before the first state, everything on its way arriving at once")
    if fast:
        said.append("no wait ends and no operator acts while a notification is in flight")
    if opening:
        said.append(f"the first {opening} steps in one order")
    if setup.variants:
        said.append(f"with {names(setup.variants)}")
    return tuple(said)


def _at_most(section: Section, setup: Setup) -> str:
    """The events that the budgets of a section allow; empty if they allow none."""
    limited = {name: count for name, count in setup.budgets.by_name.items() if count < UNLIMITED}
    events = [BUDGETS[name].count(count) for name, count in limited.items() if BUDGETS[name].section is section]
    return f"at most {', '.join(events)}" if events else ""


def _leading_and_following(setup: Setup, zab: ZabRules) -> list[str]:
    elections = setup.budgets.elections
    said = [_at_most(Section.WORKLOAD, setup) or "no client asks for anything"]
    if setup.budgets.writes:
        said.append(f"clients write {'at any server that serves' if setup.clients_anywhere else 'at the leader'}")
    if setup.grain is Grain.ORACLE:
        said.append(f"at most {BUDGETS['elections'].count(elections)}")
        if setup.discovery_in_one_step:
            said.append("FOLLOWERINFO, LEADERINFO and ACKEPOCH of those who elect arrive in the step of their election")
    if zab.asynchronous_disk:
        said.append("a disk is late by any time and keeps the order: a crash loses what is not on it")
    else:
        said.append("a disk is never late")
    said.append(f"what is committed is applied {'later, in order' if zab.asynchronous_commits else 'at once'}")
    return [*said, *_LEFT_OUT]


def _channels(setup: Setup) -> list[str]:
    rules = setup.channels
    said = [
        f"no election beyond round {setup.round_limit}",
        f"at most {rules.capacity} in flight from one server to another, and one queued",
    ]
    if setup.budgets.notification_timeouts == UNLIMITED:
        said.append("notification time-outs without limit")
    if rules.merge_repeats:
        said.append("a notification equal to the newest in flight is not sent twice")
    if not rules.resend:
        said.append("the last notification is not sent again on reconnection")
    return said
