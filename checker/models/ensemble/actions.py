"""The actions of an ensemble, and the budgets that limit them: one table of each.

Rules, fairness, openings, fast networks, pictures, reports, scenario keys and command-line options derive from these
tables (`checker.kit.actions`). A new fault is one member of `ServerAction` that names its budget, one entry of
BUDGETS with its field, and the rule that lists its moves.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from checker.engine import Move
from checker.kit.actions import Action, Budget, BudgetCounts, FaultAction, Faults, Traits
from checker.kit.environment import ENVIRONMENT
from spec.quorum import Sid


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
class ServerBudget(Budget):
    """A budget with the map of a scenario file that sets it; None if it is a key of a scenario by itself."""

    section: Section | None = Section.FAULTS
    domain: Domain = Domain.ALL
    may_be_unlimited: bool = False


BUDGETS: Mapping[str, ServerBudget] = MappingProxyType(
    {
        **{
            name: ServerBudget(**vars(ENVIRONMENT[name]))
            for name in ("crashes", "restarts", "cuts", "partitions", "heals")
        },
        "notification_timeouts": ServerBudget(
            "notification time-out", "notification time-outs", "how many notification time-outs may send a vote again",
            domain=Domain.MESSAGES, may_be_unlimited=True,
        ),
        "early_timeouts": ServerBudget(
            "server that waits no longer", "servers that wait no longer",
            "how many servers may give up on one that may yet come", domain=Domain.MESSAGES,
        ),
        "disconnects": ServerBudget(
            "drop of a quorum connection", "drops of a quorum connection",
            "how many connections of a learner with its leader may be dropped", domain=Domain.ZAB,
        ),
        "full_disks": ServerBudget(
            "full disk", "full disks", "how many disks may be full when a log is written", domain=Domain.LATE_DISK
        ),
        "elections": ServerBudget(
            "election of a leader", "elections of a leader",
            "how many elections may make a leader, by the oracle (default: 3)",
            section=None, domain=Domain.ZAB_IN_ONE_STEP,
        ),
        "writes": ServerBudget(
            "write of a client", "writes of clients", "how many transactions clients write",
            section=Section.WORKLOAD, domain=Domain.ZAB,
        ),
        "syncs": ServerBudget("sync of a client", "syncs of clients", section=Section.WORKLOAD, domain=Domain.ZAB),
        "pings": ServerBudget("round of pings", "rounds of pings", section=Section.WORKLOAD, domain=Domain.ZAB),
        "restores": ServerBudget(
            "restored snapshot", "restored snapshots", section=Section.WORKLOAD, domain=Domain.ZAB
        ),
    }
)  # fmt: skip
"""The description of each budget, by its field of `Budgets`."""


class Budgets(BudgetCounts, frozen=True):
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
    restores: int = 0


assert Budgets.__struct_fields__ == tuple(BUDGETS)

FORMER_NAMES = {"rebroadcasts": "notification_timeouts", "impatience": "early_timeouts"}
"""The present name of each budget that was renamed, for errors."""


class Need(Enum):
    """The event without which an action need not fire in a run; every other action that never fires is reported."""

    FAULT = "a fault, or too few servers"
    WRITE = "a write of a client, or one that brings a learner up to date"
    ELECTION = "an election after the history"
    CONFIGURATION = "a later configuration than that of a server that looks for a leader"


class ServerAction(Action):
    """The actions of servers, networks, faults and clients. The actions of an operator's plan are `Setup.planned`."""

    # The election.
    START = "start", Traits(fair=False)
    DELIVER = "deliver", Traits(need=Need.ELECTION, actor=1)
    DECIDE = "decide", Traits(waits=True, need=Need.ELECTION)
    REBROADCAST = (
        "rebroadcast",
        Traits(budget="notification_timeouts", caption="{} has heard nothing for a while and sends its vote again"),
    )
    ELECT = "elect", Traits(budget="elections", need=Need.ELECTION)
    LEARN = "learn", Traits(need=Need.CONFIGURATION, caption="{} learns the configuration of {}")
    # Leading and following.
    RECEIVE = "receive", Traits(actor=1)
    SYNC = "sync", Traits(need=Need.WRITE, noted=True)
    SYNC_LATE = "sync late", Traits(need=Need.WRITE, noted=True)
    APPLY = "apply", Traits(need=Need.WRITE, noted=True)
    RESUME = "resume", Traits(caption="{} goes on to acknowledge NEWLEADER", noted=True)
    PING = "ping", Traits(budget="pings", caption="{} pings its learners", noted=True)
    # The loss of the other side.
    LOSE_LEADER = "lose leader", Traits(need=Need.FAULT, caption="{} has lost its leader {}")
    LOSE_QUORUM = "lose quorum", Traits(need=Need.FAULT, caption="{} has lost its quorum")
    GIVE_UP = (
        "give up",
        Traits(fair=False, fault=True, budget="early_timeouts", caption="{} waits no longer and looks for a leader"),
    )
    # Clients.
    CLIENT_WRITE = "client write", Traits(fair=False, budget="writes", noted=True)
    CLIENT_SYNC = ("client sync", Traits(fair=False, budget="syncs", caption="a client calls sync at {}", noted=True))
    # An operator.
    RESTORE = "restore", Traits(fair=False, budget="restores")
    # Faults, and their ends.
    CRASH = FaultAction.CRASH.entry
    RESTART = FaultAction.RESTART.entry
    CUT = FaultAction.CUT.entry
    PARTITION = FaultAction.PARTITION.entry
    HEAL = FaultAction.HEAL.entry
    FILL_DISK = (
        "fill disk",
        Traits(fair=False, fault=True, budget="full_disks", caption="the disk of {} is full", noted=True),
    )
    DISCONNECT = (
        "disconnect",
        Traits(fair=False, fault=True, budget="disconnects", caption="the connection of {} and {} is dropped"),
    )


ARRIVALS = (ServerAction.DELIVER, ServerAction.RECEIVE)
LOSSES = (ServerAction.LOSE_LEADER, ServerAction.LOSE_QUORUM)
SETTLING = (
    *LOSSES,
    *ARRIVALS,
    ServerAction.RESUME,
    ServerAction.SYNC,
    ServerAction.APPLY,
    ServerAction.SYNC_LATE,
    ServerAction.LEARN,
    ServerAction.DECIDE,
    ServerAction.ELECT,
)
"""The actions of an ensemble that settles, the most urgent first: messages arrive before servers decide."""


def urgency(move: Move) -> tuple[int, ...]:
    """The order of a move in an ensemble that settles; the move's action is one of SETTLING.

    Among elections by the oracle the one with the most servers comes first, then the best vote, which wins where every
    message arrives.
    """
    order = SETTLING.index(ServerAction(move.action))
    if move.action != ServerAction.ELECT:
        return (order,)
    vote = move.sends[0].operation.vote
    return order, -len(move.arguments[1]), -vote.peer_epoch, -vote.zxid, -vote.leader


def losses(budgets: Budgets, action: ServerAction) -> tuple[ServerAction, ...]:
    """The actions of a rule that loses a leader or a quorum: with a budget it lists early timeouts too."""
    return (action, ServerAction.GIVE_UP) if budgets.early_timeouts else (action,)


class FaultsOfServers(Faults, frozen=True):
    """The faults with the types by which symmetry finds the ids of servers."""

    late: frozenset[Sid] = frozenset()
    down: frozenset[Sid] = frozenset()


def may_give_up(faults: Faults) -> bool:
    """Whether the budget of early timeouts is not exhausted."""
    return bool(faults.left.early_timeouts > 0)
