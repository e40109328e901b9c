"""The input of a model of an ensemble: servers with their files, a history, a plan, faults and a grain; the names of
its columns.

Everything here is plain data: scenarios and the command line make a `Setup`, and `build` makes a model of it.
"""

from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from itertools import combinations

import msgspec

from checker.models.ensemble.actions import Budgets, Domain
from spec.durable import Durable
from spec.election.channel import ChannelRules
from spec.quorum import MembershipChange, Sid, View, changed
from spec.txn import Layout
from spec.variants import Variant
from spec.zab.state import ZabRules

PLAN, VOTES, HISTORY = "plan", "votes", "history"
CONNECTIONS = "connections"
Link = tuple[Sid, Sid]
"""The link between two servers, the smaller id first; or a direction of it."""


def server_name(sid: Sid) -> str:
    """The column of a server, in the notation of zoo.cfg."""
    return f"server.{sid}"


def channel_name(source: Sid, destination: Sid) -> str:
    """The column of the notifications that one server sends another."""
    return f"{source}>{destination}"


def connection_name(one: Sid, other: Sid) -> str:
    """The column of the quorum connection between two servers."""
    return f"{min(one, other)}-{max(one, other)}"


class Grain(Enum):
    """The granularity of the exploration of an election."""

    FINE = "fine"  # every notification, timer and connection
    ORACLE = "oracle"  # an election is one step, chosen among all of its possible outcomes


@dataclass(frozen=True)
class File:
    """A configuration file: its name in reports, and the view that it gives its server."""

    name: str
    view: View


@dataclass(frozen=True)
class Software:
    """The release of ZooKeeper that a server runs: its name in reports, and its known defects.

    The default is the specification, which has none.
    """

    name: str = "the specification"
    defects: frozenset[Variant] = frozenset()


@dataclass(frozen=True)
class Member:
    """A server: the file it boots with, the contents of its disk, and whether it runs from the start.

    A `late` server starts at any time, or never; the others run when exploration begins.
    """

    sid: Sid
    file: File
    durable: Durable = Durable()
    late: bool = False
    other_files: tuple[File, ...] = ()  # a restart after a crash may load one of these instead of the last one
    software: Software = Software()


@dataclass(frozen=True)
class PlannedAction:
    """One action of an operator: stop a server, or start it with a file.

    Without a file a server starts with its first one, or with the one that it keeps where it may be reconfigured.
    `after` names servers that must have rejoined first: each has decided, and its leader (possibly the server itself)
    leads with a quorum of the leader's view following it. With `disk` a server starts with that content in its data
    directory: an empty one, as on another host without a copy of its disk, or one of an earlier time, from a backup.
    With `software` it starts with another release.
    """

    action: str  # "stop" or "start"
    sid: Sid
    file: File | None = None  # for a start
    after: tuple[Sid, ...] = ()
    disk: Durable | None = None  # its own
    software: Software | None = None  # its present one

    @property
    def label(self) -> str:
        """The action and its server, as in "stop 2"."""
        return f"{self.action} {self.sid}"


@dataclass(frozen=True)
class PlannedReconfig:
    """A `reconfig` command of an operator: it is repeated until a leader that serves accepts it.

    `after` as for other actions.
    """

    change: MembershipChange
    after: tuple[Sid, ...] = ()

    @property
    def label(self) -> str:
        """The command, as in "reconfig +4 -1": servers that join as voters, as observers, and that leave."""
        joining = [f"+{sid}" for sid in sorted(self.change.voters)]
        observing = [f"+{sid}:observer" for sid in sorted(self.change.observers)]
        return " ".join(["reconfig", *joining, *observing, *(f"-{sid}" for sid in sorted(self.change.leaving))])


@dataclass(frozen=True)
class Prologue:
    """The past before exploration begins: some servers start, and every step that must happen is taken."""

    start: tuple[Sid, ...] = ()
    settle: bool = True


@dataclass(frozen=True)
class Setup:
    """The input of a model of an ensemble. Raises ValueError where its parts are inconsistent."""

    members: tuple[Member, ...]
    grain: Grain = Grain.FINE
    prologue: tuple[Prologue, ...] = ()
    plan: tuple[PlannedAction | PlannedReconfig, ...] = ()
    budgets: Budgets = field(default_factory=Budgets)
    round_limit: int = 3
    channels: ChannelRules = ChannelRules(merge_repeats=True)
    variants: frozenset[Variant] = frozenset()
    zab: ZabRules | None = None  # None: only the election
    clients_anywhere: bool = False  # clients write at any server that serves, not only at the leader
    discovery_in_one_step: bool = False  # with the oracle: FOLLOWERINFO, LEADERINFO and ACKEPOCH are part of it
    reconfigurable: bool = False  # in journals: the configuration may change, although there is no plan
    hears_observers: bool = False  # as `ElectionRules` has it

    def __post_init__(self) -> None:
        sids_ = {member.sid for member in self.members}
        if len(sids_) != len(self.members):
            raise ValueError("two servers have the same id")
        for planned in self.plan:
            strangers = {*_servers_of(planned), *planned.after} - sids_
            if strangers:
                raise ValueError(f"the plan names server {min(strangers)}, and the scenario has none of that id")
        for prologue in self.prologue:
            strangers = set(prologue.start) - sids_
            if strangers:
                raise ValueError(f"the history starts server {min(strangers)}, and the scenario has none of that id")

    @cached_property
    def sids(self) -> tuple[Sid, ...]:
        """The ids of all servers, ascending."""
        return tuple(sorted(member.sid for member in self.members))

    @cached_property
    def releases(self) -> tuple[Software, ...]:
        """Each release that some server runs at some time."""
        installed = [planned.software for planned in self.process_actions if planned.software is not None]
        return tuple(dict.fromkeys([member.software for member in self.members] + installed))

    @cached_property
    def layout(self) -> Layout | None:
        """The layout that reads the zxids of every server; None where all counters have 32 bits.

        No epoch of a model comes near 256, so the zxids of the two layouts are apart.
        """
        return None if all(member.durable.layout is None for member in self.members) else Layout(switch=1)

    @property
    def all_variants(self) -> frozenset[Variant]:
        """The variants of the run, and the defects of every release in it."""
        return self.variants.union(*(release.defects for release in self.releases))

    def zab_with(self, defects: frozenset[Variant]) -> ZabRules | None:
        """The rules of leading and following of a server whose release has these defects."""
        if self.zab is None or not defects:
            return self.zab
        return msgspec.structs.replace(self.zab, variants=self.zab.variants | defects)

    @cached_property
    def planned(self) -> dict[str, PlannedAction | PlannedReconfig]:
        """The actions of the plan in their order, by the names of their moves. Each has its own, so that a stuck plan
        shows in the coverage.
        """
        return {f"plan {number}: {action.label}": action for number, action in enumerate(self.plan, 1)}

    @property
    def process_actions(self) -> tuple[PlannedAction, ...]:
        """The actions of the plan that stop or start a server."""
        return tuple(action for action in self.plan if isinstance(action, PlannedAction))

    @property
    def reconfigs(self) -> tuple[MembershipChange, ...]:
        """The reconfigurations of the plan, in their order."""
        return tuple(action.change for action in self.plan if isinstance(action, PlannedReconfig))

    @property
    def is_static(self) -> bool:
        """Whether no reconfiguration can happen."""
        return not self.reconfigs and not self.reconfigurable

    @property
    def started_by_plan(self) -> frozenset[Sid]:
        """The servers that the operator starts before stopping them: they do not run until then."""
        first = {planned.sid: planned.action for planned in reversed(self.process_actions)}
        return frozenset(sid for sid, action in first.items() if action == "start")

    def files_of(self, sid: Sid) -> tuple[File, ...]:
        """Every file that a server may run with, the first one first."""
        member = next(member for member in self.members if member.sid == sid)
        planned = [p.file for p in self.process_actions if p.sid == sid and p.file is not None]
        return tuple(dict.fromkeys((member.file, *member.other_files, *planned)))

    def views_of(self, sid: Sid) -> tuple[View, ...]:
        """Every view that a server may get from a file, the first one first."""
        return self._views_by_file[sid]

    @cached_property
    def _views_by_file(self) -> dict[Sid, tuple[View, ...]]:
        return {sid: tuple(dict.fromkeys(file.view for file in self.files_of(sid))) for sid in self.sids}

    @property
    def files(self) -> tuple[File, ...]:
        """Every file that some server may run with."""
        return tuple(dict.fromkeys(file for sid in self.sids for file in self.files_of(sid)))

    @cached_property
    def reachable_views(self) -> tuple[View, ...]:
        """Every view that some server may have: from a file, or after any of the plan's reconfigurations.

        The version of a view after a reconfiguration is 1 here; in a run it is the zxid of its transaction.
        """
        views = dict.fromkeys(view for sid in self.sids for view in self.views_of(sid))
        for change in self.reconfigs:
            after = [changed(view, change, 1) for view in views if view.version]
            views |= dict.fromkeys(view for view in after if view is not None)
        return tuple(views)

    def talk(self, one: Sid, other: Sid) -> bool:
        """Whether two servers may ever send each other notifications: one is a voter in a view of the other."""
        mine, theirs = self.possible_views(one), self.possible_views(other)
        return any(view.is_voter(other) for view in mine) or any(view.is_voter(one) for view in theirs)

    @cached_property
    def quorum_pairs(self) -> tuple[tuple[Sid, Sid], ...]:
        """The pairs of servers, the smaller id first, where one may follow the other."""
        return tuple(pair for pair in combinations(self.sids, 2) if self.talk(*pair))

    @cached_property
    def addressed(self) -> bool:
        """Whether files differ in peer addresses, so that a server may not reach another one."""
        return any(view.addresses is not None for view in self.reachable_views)

    @property
    def domains(self) -> frozenset[Domain]:
        """The domains of this model; a budget of any other domain has no effect in it."""
        one_step = self.grain is Grain.ORACLE
        holds = {
            Domain.ALL: True,
            Domain.MESSAGES: not one_step,
            Domain.ZAB: self.zab is not None,
            Domain.ZAB_IN_ONE_STEP: self.zab is not None and one_step,
            Domain.LATE_DISK: self.zab is not None and self.zab.asynchronous_disk,
        }
        return frozenset(domain for domain, holding in holds.items() if holding)

    @property
    def keeps_connections(self) -> bool:
        """Whether election connections are a column: elections are one step, and addresses differ.

        With the fine grain the channels hold that state.
        """
        return self.addressed and self.grain is Grain.ORACLE

    @cached_property
    def gossip(self) -> bool:
        """Whether configurations have versions, so that servers learn newer ones from one another."""
        return any(view.version > 0 for view in self.reachable_views)

    def possible_views(self, sid: Sid) -> tuple[View, ...]:
        """Every view that a server may have, from a file or by gossip."""
        return self.reachable_views if self.gossip else self.views_of(sid)

    @property
    def connections_break(self) -> bool:
        """Whether a connection can be lost, so that the last message sent matters."""
        budgets = self.budgets
        return bool(self.gossip or self.plan or budgets.crashes or budgets.cuts or budgets.partitions)

    @property
    def outsiders(self) -> bool:
        """Whether a server may hear from a server that is not a voter in its view."""
        return any(
            self.talk(sid, peer) and not all(view.is_voter(peer) for view in self.possible_views(sid))
            for sid in self.sids
            for peer in self.sids
            if sid != peer
        )


def _servers_of(planned: PlannedAction | PlannedReconfig) -> frozenset[Sid]:
    if isinstance(planned, PlannedAction):
        return frozenset({planned.sid})
    return planned.change.voters | planned.change.observers | planned.change.leaving
