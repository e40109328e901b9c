"""Invariants of dynamic reconfiguration: views are agreed on, become active when they are committed, and never go back.

That two configurations with disjoint quorums never both commit is not a property here: `LeaderLogCompleteness`,
`Agreement` and `OneTxnPerZxid` find every harm that two such commits can do.

Sources: Shraer, Reed, Malkhi, Junqueira: Dynamic Reconfiguration of Primary/Backup Clusters (USENIX ATC 2012);
`QuorumPeer.processReconfig`, `Leader.tryToCommit`.
"""

from functools import partial
from typing import Any

from checker.engine import TRIVIAL, Finding, Kind, Outcome, Read
from checker.models.ensemble.history import CommittedView, History, HistoryPart, part
from checker.models.ensemble.setup import HISTORY, Setup, server_name
from checker.properties.projections import ENSEMBLE_PROPERTIES, ZAB, reads_of
from checker.properties.registry import Answer, Condition, Scope, StepCondition
from checker.refinement.abstract_steps import REFINEMENT, AbstractSteps, named
from spec.election.messages import Start
from spec.quorum import Sid, View
from spec.server import Server
from spec.txn import Txn, format_zxid
from spec.zab.state import Leader

RECONFIGURED: Scope[Setup] = Scope(
    lambda setup: setup.zab is not None and not setup.is_static,
    "with `protocol: zab`, if the plan has a `reconfig`",
    "speaks of reconfigurations, and the plan has none",
    "add a reconfig to the plan",
)

_reconfiguration_invariant = partial(
    ENSEMBLE_PROPERTIES.declare, kind=Kind.ALWAYS, default=RECONFIGURED, needs=RECONFIGURED
)


def _views_of_files(setup: Setup) -> frozenset[View]:
    """The views with which servers start; every other view comes from a reconfiguration."""
    return frozenset(file.view for file in setup.files)


@_reconfiguration_invariant(
    "OneViewPerVersion",
    meaning="Views of one version are equal, on all servers, active or seen last",
    violation="servers count different quorums under one version, and none of them will learn of it",
    premise="Two views of later versions than those of the files are known",
    source="Paper, section 3: configurations are totally ordered. `QuorumPeer.setLastSeenQuorumVerifier`, which "
    "assumes that a version identifies a configuration",
)
def _one_view_per_version(setup: Setup) -> Condition:
    def check(*known: tuple[View, ...]) -> Answer:
        views = [(sid, view) for sid, pairs in zip(setup.sids, known, strict=True) for view in pairs]
        first: dict[int, tuple[Sid, View]] = {}
        for sid, view in views:
            peer, same = first.setdefault(view.version, (sid, view))
            if same != view:
                values = (("version", format_zxid(view.version)), ("servers", [peer, sid]))
                return Finding("two views have one version", values)
        return None if len(views) > 1 else TRIVIAL

    files = _views_of_files(setup)

    def learnt(server: Server) -> tuple[View, ...]:
        return tuple(view for view in (server.view, server.last_seen) if view is not None and view not in files)

    return Condition(tuple(Read(server_name(sid), learnt) for sid in setup.sids), check)


@_reconfiguration_invariant(
    "ActiveViewCommitted",
    meaning="A server counts by a new view only after a leader has committed the view",
    violation="servers elect a leader by a configuration that was never agreed on, without a quorum of the one before",
    premise="A server has a view that is not of a file",
    source="Paper, section 3.2: a configuration is activated once it is committed",
    notes="A leader commits a view with its transaction. A new leader that has seen a later view completes it: "
    "NEWLEADER then needs a quorum of both views. The transaction itself may be lost, since a server writes the view "
    "before the transaction.",
)
def _active_view_committed(setup: Setup) -> Condition:
    files = _views_of_files(setup)

    def learnt(server: Server) -> View | str:
        return "a file's" if server.view in files else server.view

    def check(committed: tuple[CommittedView, ...], *active: View | str) -> Answer:
        new = [(sid, view) for sid, view in zip(setup.sids, active, strict=True) if isinstance(view, View)]
        agreed = {commit.view for commit in committed}
        for sid, view in new:
            if view not in agreed:
                values = (("server", sid), ("version", format_zxid(view.version)), ("voters", sorted(view.voters)))
                return Finding("a server has activated a view that is not committed", values)
        return None if new else TRIVIAL

    return Condition(reads_of(setup, learnt, HistoryPart.VIEWS), check)


@_reconfiguration_invariant(
    "CommittedViewInForce",
    meaning="A leader that serves counts by the last view that was committed in an earlier epoch, or by a later one",
    violation="a committed reconfiguration is lost: a leader commits by the quorums of the configuration before it",
    premise="A leader serves in a later epoch than that of a committed reconfiguration",
    source="Paper, section 3: a committed configuration survives. `Leader.startZkServer` (ZOOKEEPER-1324)",
)
def _committed_view_in_force(setup: Setup) -> Condition:
    def leads(server: Server) -> tuple[int, int]:
        part = server.zab
        return (part.epoch, server.view.version) if isinstance(part, Leader) and part.serves else (0, 0)

    def check(committed: tuple[CommittedView, ...], *leaders: tuple[int, int]) -> Answer:
        cases = [
            (sid, version, commit)
            for sid, (epoch, version) in zip(setup.sids, leaders, strict=True)
            for commit in committed
            if commit.epoch < epoch
        ]
        for sid, version, commit in cases:
            if version < commit.view.version:
                values = (
                    ("leader", sid),
                    ("its view", format_zxid(version)),
                    ("committed", format_zxid(commit.view.version)),
                )
                return Finding("a leader serves by a view before a committed one", values)
        return None if cases else TRIVIAL

    return Condition(reads_of(setup, leads, HistoryPart.VIEWS), check)


@_reconfiguration_invariant(
    "DesignatedLeaderComplete",
    meaning="The designated leader of a new view has every transaction that its predecessor has committed",
    violation="a removed leader hands over to a server without an acknowledged write",
    premise="A leader has designated another server, which is still in its epoch",
    source="`Leader.getDesignatedLeader`, which chooses among the servers that acknowledged the reconfiguration",
    notes="An acknowledgement follows a write to the disk, and a log has no gaps. A server that has accepted a later "
    "epoch does not count: it may have been told to truncate.",
)
def _designated_leader_complete(setup: Setup) -> Condition:
    def projected(server: Server) -> tuple[int, Sid | None, tuple[Txn, ...], tuple[Txn, ...]]:
        part, disk = server.zab, tuple(server.durable.txns)
        if not isinstance(part, Leader) or part.successor is None:
            return server.durable.accepted_epoch, None, (), disk
        return part.epoch, part.successor, tuple(txn for txn in disk if txn.zxid <= part.committed), disk

    def check(*seen: tuple[int, Sid | None, tuple[Txn, ...], tuple[Txn, ...]]) -> Answer:
        by_sid = dict(zip(setup.sids, seen, strict=True))
        occurs = False
        for sid, (epoch, successor, committed, _) in by_sid.items():
            if successor not in by_sid or by_sid[successor][0] != epoch:
                continue
            occurs = True
            missing = [format_zxid(txn.zxid) for txn in committed if txn not in by_sid[successor][3]]
            if missing:
                values = (("leader", sid), ("designated", successor), ("missing", missing))
                return Finding("the designated leader lacks a committed transaction", values)
        return None if occurs else TRIVIAL

    return Condition(tuple(Read(server_name(sid), projected) for sid in setup.sids), check)


@_reconfiguration_invariant(
    "ActiveViewNeverReturns",
    meaning="The version of a server's active view never decreases",
    violation="a client reads a configuration, and then an earlier one from the same server",
    premise="A server takes a step with a view that is not of a file",
    source="`QuorumPeer.setQuorumVerifier`, which ignores an earlier version",
    notes="It is a property of steps. A start with another file may have any version.",
)
def _active_view_never_returns(setup: Setup) -> StepCondition:
    files = _views_of_files(setup)

    def judge(values: tuple[Any, ...], operation: Any, outcome: Outcome) -> Answer:
        before, after = values[0].view, outcome.values[0].view
        if isinstance(operation, Start) or before in files:
            return TRIVIAL
        if after.version >= before.version:
            return None
        versions = (("server", values[0].sid), ("before", format_zxid(before.version)))
        return Finding("a server returns to an earlier view", (*versions, ("after", format_zxid(after.version))))

    return StepCondition(tuple(server_name(sid) for sid in setup.sids), judge)


@ENSEMBLE_PROPERTIES.declare(
    REFINEMENT,
    Kind.ALWAYS,
    needs=ZAB,
    meaning="Each step of a server is a step of abstract Zab, which is proved safe, or changes nothing there",
    violation="a server takes a step that the proof of Zab does not allow, so the proof says nothing about the rest",
    premise="A server takes a step that concerns abstract Zab",
    source="`checker.symbolic.zab.actions`",
    notes=(
        "It is a property of steps. Name it to examine it: its history variables add states. A finding names the first "
        "condition of an abstract action that does not hold."
    ),
)
def _refines_abstract_zab(setup: Setup) -> StepCondition:
    del setup
    return StepCondition((HISTORY,), _judged, (Read(HISTORY, part(HistoryPart.REIGNS)),))


def _judged(values: tuple[Any, ...], fact: Any, outcome: Outcome) -> Answer:
    del outcome
    if not isinstance(fact, AbstractSteps):
        return TRIVIAL
    from checker.refinement.judgement import judge, shown  # noqa: PLC0415 (it loads z3 where that is installed)

    history: History = values[0]
    broken = judge(history.reigns, fact).broken
    if not broken:
        return None
    clause, rest = named(broken)
    return Finding(clause, (("server", fact.server), ("abstract actions", shown(fact.calls)), *rest))
