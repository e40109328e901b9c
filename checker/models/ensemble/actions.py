"""The actions of an ensemble, and the budgets that limit them: one table of each.

Rules, fairness, openings, fast networks, pictures, reports, scenario keys and command-line options derive from these
tables. A new fault is one member of `Action`, one entry of BUDGETS with its field, and the rule that lists its moves.

Rules of this module: an action is a value, and its traits say what holds for all of its moves. No other module derives
anything from the spelling of an action or of a rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec.structs import replace

from checker.engine import Actor, Move, Outcome, Read
from spec.quorum import Sid

FAULTS = "faults"  # the column that counts the budgets
UNLIMITED = 1 << 30
"""A budget that is never exhausted, used where this adds no state."""


class Section(Enum):
    """The map of a scenario file that sets a budget."""

    FAULTS = "faults"
    WORKLOAD = "workload"


class Domain(Enum):
    """The models in which a budget can have an effect; `Setup.domains` are those of a model.

    The value describes all other models, and the scenario key that makes a model one of the domain.
    """

    ALL = ("", "")
    MESSAGES = ("an election is one step", "grain: fine")
    ZAB = ("the election is all there is", "protocol: zab")
    ZAB_IN_ONE_STEP = ("elections are explored message by message", "grain: oracle")
    LATE_DISK = ("a disk is never late", "disk: async")

    @property
    def otherwise(self) -> str:
        """The description of the models outside the domain."""
        return self.value[0]

    @property
    def setting(self) -> str:
        """The scenario key, with its value, that selects the domain."""
        return self.value[1]

    @property
    def is_of_zab(self) -> bool:
        """Whether servers lead and follow in all of its models."""
        return self not in (Domain.ALL, Domain.MESSAGES)


@dataclass(frozen=True)
class Budget:
    """The description of a budget: its unit for reports (one, several), and the help text of its option, if any.

    `section` is None for a budget that is a key of a scenario by itself.
    """

    one: str
    several: str
    option: str | None = None
    section: Section | None = Section.FAULTS
    domain: Domain = Domain.ALL
    may_be_unlimited: bool = False

    def count(self, count: int) -> str:
        """A number of units, as in "2 crashes"."""
        return f"{count} {self.one if count == 1 else self.several}"


BUDGETS: Mapping[str, Budget] = MappingProxyType(
    {
        "crashes": Budget("crash", "crashes", "how many servers may crash"),
        "restarts": Budget("restart after a crash", "restarts after crashes", "how many crashed servers may come back"),
        "cuts": Budget("cut of a link", "cuts of a link", "how many links may be cut"),
        "partitions": Budget("partition", "partitions", "how often the ensemble may be cut in two"),
        "heals": Budget("healing of all links", "healings of all links", "how often all cut links may heal together"),
        "notification_timeouts": Budget(
            "notification time-out", "notification time-outs", "how many notification time-outs may send a vote again",
            domain=Domain.MESSAGES, may_be_unlimited=True,
        ),
        "early_timeouts": Budget(
            "server that waits no longer", "servers that wait no longer",
            "how many servers may give up on one that may yet come", domain=Domain.MESSAGES,
        ),
        "disconnects": Budget(
            "drop of a quorum connection", "drops of a quorum connection",
            "how many connections of a learner with its leader may be dropped", domain=Domain.ZAB,
        ),
        "full_disks": Budget(
            "full disk", "full disks", "how many disks may be full when a log is written", domain=Domain.LATE_DISK
        ),
        "elections": Budget(
            "election of a leader", "elections of a leader",
            "how many elections may make a leader, by the oracle (default: 3)",
            section=None, domain=Domain.ZAB_IN_ONE_STEP,
        ),
        "writes": Budget(
            "write of a client", "writes of clients", "how many transactions clients write",
            section=Section.WORKLOAD, domain=Domain.ZAB,
        ),
        "syncs": Budget("sync of a client", "syncs of clients", section=Section.WORKLOAD, domain=Domain.ZAB),
        "pings": Budget("round of pings", "rounds of pings", section=Section.WORKLOAD, domain=Domain.ZAB),
    }
)  # fmt: skip
"""The description of each budget, by its field of `Budgets`."""


class Budgets(msgspec.Struct, frozen=True):
    """The number of times that each event may happen, over the whole run.

    `notification_timeouts` may be UNLIMITED: a repeated message is merged with the one in flight, so states stay
    finite. Liveness needs this, because a real server never stops. `early_timeouts` let a server give up on a leader,
    or on followers, that may still come; giving up on one that cannot come is never limited.
    """

    crashes: int = 0
    restarts: int = 0
    cuts: int = 0
    partitions: int = 0
    heals: int = 0
    notification_timeouts: int = 0
    early_timeouts: int = 0
    disconnects: int = 0
    full_disks: int = 0
    elections: int = 0
    writes: int = 0
    syncs: int = 0
    pings: int = 0

    @property
    def by_name(self) -> dict[str, int]:
        """Each nonzero budget, by its name."""
        return {name: count for name, count in msgspec.structs.asdict(self).items() if count}


assert Budgets.__struct_fields__ == tuple(BUDGETS)

FORMER_NAMES = {"rebroadcasts": "notification_timeouts", "impatience": "early_timeouts"}
"""The present name of each budget that was renamed, for errors."""


class Need(Enum):
    """The event without which an action need not fire in a run; every other action that never fires is reported."""

    NOTHING = "nothing"
    FAULT = "a fault, or too few servers"
    WRITE = "a write of a client, or one that brings a learner up to date"
    ELECTION = "an election after the history"
    CONFIGURATION = "a later configuration than that of a server that looks for a leader"


@dataclass(frozen=True)
class Traits:
    """The properties that all moves of an action share.

    - `fair`: a move that stays possible happens at last. Steps of servers and of the network are fair; steps of a
      fault, of the operator and of a client need never happen.
    - `fault`: a run without this action explains a finding better.
    - `waits`: the step takes longer than a message needs to arrive on a fast network.
    - `need`: the action may be silent without this.
    - `actor`: the place of the server that acts among the arguments of a move.
    - `caption`: the sentence for a reader, with a pair of braces for each server among the arguments; None where
      `checker.present` words the arguments.
    - `noted`: a picture notes the caption at the lane of the actor.
    """

    fair: bool = True
    fault: bool = False
    waits: bool = False
    need: Need = Need.NOTHING
    actor: int = 0
    caption: str | None = None
    noted: bool = False


class Action(StrEnum):
    """The actions of servers, networks, faults and clients. The actions of an operator's plan are `Setup.planned`.

    The value is the name that coverage, traces and JSON documents show.
    """

    traits: Traits

    def __new__(cls, name: str, traits: Traits = Traits()) -> Action:
        """Make the member of this name, with its traits."""
        member = str.__new__(cls, name)
        member._value_ = name
        member.traits = traits
        return member

    # The election.
    START = "start", Traits(fair=False)
    DELIVER = "deliver", Traits(need=Need.ELECTION, actor=1)
    DECIDE = "decide", Traits(waits=True, need=Need.ELECTION)
    REBROADCAST = (
        "rebroadcast",
        Traits(caption="{} has heard nothing for a while and sends its vote again"),
    )
    ELECT = "elect", Traits(need=Need.ELECTION)
    LEARN = "learn", Traits(need=Need.CONFIGURATION, caption="{} learns the configuration of {}")
    # Leading and following.
    RECEIVE = "receive", Traits(actor=1)
    SYNC = "sync", Traits(need=Need.WRITE, noted=True)
    SYNC_LATE = "sync late", Traits(need=Need.WRITE, noted=True)
    APPLY = "apply", Traits(need=Need.WRITE, noted=True)
    RESUME = "resume", Traits(caption="{} goes on to acknowledge NEWLEADER", noted=True)
    PING = "ping", Traits(caption="{} pings its learners", noted=True)
    # The loss of the other side.
    LOSE_LEADER = "lose leader", Traits(need=Need.FAULT, caption="{} has lost its leader {}")
    LOSE_QUORUM = "lose quorum", Traits(need=Need.FAULT, caption="{} has lost its quorum")
    GIVE_UP = "give up", Traits(fair=False, fault=True, caption="{} waits no longer and looks for a leader")
    # Clients.
    CLIENT_WRITE = "client write", Traits(fair=False, noted=True)
    CLIENT_SYNC = "client sync", Traits(fair=False, caption="a client calls sync at {}", noted=True)
    # Faults, and their ends.
    CRASH = "crash", Traits(fair=False, fault=True, caption="{} crashes")
    RESTART = "restart", Traits(fair=False)
    CUT = "cut", Traits(fair=False, fault=True)
    PARTITION = "partition", Traits(fair=False, fault=True)
    HEAL = "heal", Traits(fair=False, caption="all links are whole again")
    FILL_DISK = "fill disk", Traits(fair=False, fault=True, caption="the disk of {} is full", noted=True)
    DISCONNECT = "disconnect", Traits(fair=False, fault=True, caption="the connection of {} and {} is dropped")


ARRIVALS = (Action.DELIVER, Action.RECEIVE)
LOSSES = (Action.LOSE_LEADER, Action.LOSE_QUORUM)
SETTLING = (
    *LOSSES,
    *ARRIVALS,
    Action.RESUME,
    Action.SYNC,
    Action.APPLY,
    Action.SYNC_LATE,
    Action.LEARN,
    Action.DECIDE,
    Action.ELECT,
)
"""The actions of an ensemble that settles, the most urgent first: messages arrive before servers decide."""
FAULT_ACTIONS = frozenset(action for action in Action if action.traits.fault)


def urgency(move: Move) -> tuple[int, ...]:
    """The order of a move in an ensemble that settles; the move's action is one of SETTLING.

    Among elections by the oracle the one with the most servers comes first, then the best vote, which wins where every
    message arrives.
    """
    order = SETTLING.index(Action(move.action))
    if move.action != Action.ELECT:
        return (order,)
    vote = move.sends[0].operation.vote
    return order, -len(move.arguments[1]), -vote.peer_epoch, -vote.zxid, -vote.leader


def losses(budgets: Budgets, action: Action) -> tuple[Action, ...]:
    """The actions of a rule that loses a leader or a quorum: with a budget it lists early timeouts too."""
    return (action, Action.GIVE_UP) if budgets.early_timeouts else (action,)


def fair_among(actions: Iterable[str]) -> tuple[str, ...]:
    """The actions that happen at last if they stay possible. Those of an operator's plan need never happen."""
    return tuple(action for action in actions if isinstance(action, Action) and action.traits.fair)


# The column that counts the budgets.


class Faults(msgspec.Struct, frozen=True):
    """The remaining budgets; `late` servers have yet to start, `down` servers were crashed by a fault."""

    left: Budgets = Budgets()
    late: frozenset[Sid] = frozenset()
    down: frozenset[Sid] = frozenset()


class Spend(msgspec.Struct, frozen=True):
    """Take one from a budget; `late` and `down` change by these servers."""

    budget: str | None
    started: Sid | None = None
    crashed: Sid | None = None


def faults_actor() -> Actor:
    """The budgets; an operation on an exhausted budget is impossible."""

    def step(values: tuple[Any, ...], spend: Spend) -> Outcome | None:
        faults: Faults = values[0]
        left, late, down = faults.left, faults.late, faults.down
        if spend.budget is not None:
            available = getattr(left, spend.budget)
            if available <= 0:
                return None
            if available < UNLIMITED:
                left = replace(left, **{spend.budget: available - 1})
        if spend.started is not None:
            late, down = late - {spend.started}, down - {spend.started}
        if spend.crashed is not None:
            down = down | {spend.crashed}
        return Outcome((Faults(left, late, down),))

    return Actor(FAULTS, (FAULTS,), step)


def has_left(budget: str) -> Read:
    """A gate: the budget is not exhausted."""
    return Read(FAULTS, lambda faults: True if getattr(faults.left, budget) > 0 else None)


def may_give_up(faults: Faults) -> bool:
    """Whether the budget of early timeouts is not exhausted."""
    return faults.left.early_timeouts > 0
