"""Guarantees on znodes and data (R12, R13), as clients and trees see them.

R12: one creator of a path, unique sequence numbers, ephemeral znodes that live as long as their session. R13: order,
expected replies, all or nothing, a single system image, durability, and the effect of `sync`.
"""

from typing import Any

from checker.engine import TRIVIAL, Kind, Read
from checker.models.service.history import HISTORY, CommitHistory
from checker.models.service.observations import Note, Observations
from checker.present import wording
from checker.present.wording import session as told_session
from checker.properties.registry import Answer, Condition
from checker.properties.service.projections import (
    CREATES,
    EPHEMERAL,
    EVERYWHERE,
    EXPECTATIONS,
    MULTI,
    SEQUENTIAL,
    SERVICE_PROPERTIES,
    SYNCS,
    UPDATES,
    ServiceRun,
    flagged,
    found,
    keepers,
    memories,
    trees,
)
from spec.tree.data import Kind as ZnodeKind
from spec.tree.data import Znode, kind_of
from spec.tree.requests import Create, Multi, SessionId, SetData
from spec.tree.store import FrozenStore

Owned = tuple[SessionId, str]


@SERVICE_PROPERTIES.declare(
    "OneCreator",
    Kind.ALWAYS,
    meaning="Of several creators of one path, exactly one succeeds while the znode exists",
    premise="A client has learned that its creation succeeded or was refused",
    requirements=("R12",),
    notes="No path is created while it exists, the clients that see a success are not more than the creations, and "
    "no creation is refused for a path that was never created.",
    default=CREATES,
    facts=(Note.CREATED,),
)
def _one_creator(run: ServiceRun) -> Condition:
    def creations(history: CommitHistory) -> tuple[tuple[tuple[str, int], ...], str | None]:
        return history.creations, history.again

    def check(shown: tuple[tuple[tuple[str, int], ...], str | None], *clients: Any) -> Answer:
        times, again = dict(shown[0]), shown[1]
        if again is not None:
            return found("a znode is created that is there already", (("path", again),))
        if not any(created or refused for created, refused in clients):
            return TRIVIAL
        for path in sorted(frozenset[str]().union(*(created for created, _ in clients))):
            who = [client for client, (created, _) in enumerate(clients, 1) if path in created]
            if len(who) > times.get(path, 0):
                values = (("path", path), ("clients", who), ("creations", times.get(path, 0)))
                return found("more clients are told that they created a znode than have", values)
        for client, (_, refused) in enumerate(clients, 1):
            for path in sorted(refused - times.keys()):
                return found("a creation is refused though nobody has created it", (("path", path), ("client", client)))
        return None

    values = memories(run.setup, lambda memory: (memory.created, memory.refused))
    return Condition((Read(HISTORY, creations), *values), check)


@SERVICE_PROPERTIES.declare(
    "SequenceNumbersAreUnique",
    Kind.ALWAYS,
    meaning="No sequential name is assigned twice under one parent during its lifetime",
    premise="A sequential name was assigned",
    requirements=("R12",),
    default=SEQUENTIAL,
    facts=(Note.NUMBERS,),
)
def _sequence_numbers(_: ServiceRun) -> Condition:
    def sequence_numbers(history: CommitHistory) -> tuple[bool, str | None]:
        return bool(history.numbers), history.twice

    def check(numbers: tuple[bool, str | None]) -> Answer:
        premise, twice = numbers
        if twice is not None:
            return found("a sequential name is given a second time", (("path", twice),))
        return None if premise else TRIVIAL

    return Condition((Read(HISTORY, sequence_numbers),), check)


@SERVICE_PROPERTIES.declare(
    "EphemeralsEndWithSession",
    Kind.ALWAYS,
    meaning="In every tree, each ephemeral znode belongs to a session that is open there",
    premise="A tree has an ephemeral znode",
    requirements=("R12",),
    default=EPHEMERAL,
)
def _ephemerals_end(run: ServiceRun) -> Condition:
    def orphans(store: FrozenStore, _zxid: int) -> tuple[bool, tuple[Owned, ...]]:
        open_ = {session for session, _ in store.sessions}
        owned = [(znode.ephemeral_owner, path) for path, znode in store.nodes if _is_ephemeral(znode)]
        return bool(owned), tuple((session, path) for session, path in owned if session not in open_)

    def check(*shown: tuple[bool, tuple[Owned, ...]]) -> Answer:
        if not any(premise for premise, _ in shown):
            return TRIVIAL
        for keeper, (_, orphans) in zip(keepers(run.setup), shown, strict=True):
            for session, path in orphans:
                return found(
                    "an ephemeral znode is there after its session",
                    (("at", keeper), ("path", path), ("session", told_session(session))),
                )
        return None

    return Condition(trees(run.setup, orphans), check)


def _is_ephemeral(znode: Znode) -> bool:
    """Whether a session owns the znode. The owner field also marks containers and times to live (`EphemeralType`)."""
    return kind_of(znode.ephemeral_owner) is ZnodeKind.EPHEMERAL


@SERVICE_PROPERTIES.declare(
    "EphemeralsLiveWithSession",
    Kind.ALWAYS,
    meaning="An ephemeral znode stays in every tree until a client deletes it or its session ends there",
    requirements=("R12",),
    notes="Neither a lost connection nor a move to another server ends it.",
    default=EPHEMERAL,
    facts=(Note.EPHEMERALS,),
)
def _ephemerals_live(run: ServiceRun) -> Condition:
    def living(store: FrozenStore, zxid: int) -> tuple[int, frozenset[SessionId], frozenset[Owned]]:
        owned = frozenset((znode.ephemeral_owner, path) for path, znode in store.nodes if _is_ephemeral(znode))
        return zxid, frozenset(session for session, _ in store.sessions), owned

    def ephemerals(history: CommitHistory) -> frozenset[tuple[SessionId, str, int]] | None:
        return history.ephemerals or None

    def check(created: frozenset[tuple[SessionId, str, int]], *there: Any) -> Answer:
        for keeper, (presence, open_, owned) in zip(keepers(run.setup), there, strict=True):
            for session, path, zxid in sorted(created):
                if zxid <= presence and session in open_ and (session, path) not in owned:
                    return found(
                        "an ephemeral znode is gone while its session is open",
                        (("at", keeper), ("path", path), ("session", told_session(session))),
                    )
        return None

    reads = (Read(HISTORY, ephemerals), *trees(run.setup, living))
    return Condition(reads, check)


@SERVICE_PROPERTIES.declare(
    "UpdatesInOrder",
    Kind.ALWAYS,
    meaning="A client's updates take effect in the order of its requests",
    premise="An update has taken effect",
    requirements=("R13",),
    default=UPDATES,
    facts=(Note.ORDER,),
)
def _updates_in_order(_: ServiceRun) -> Condition:
    def overtaken(history: CommitHistory) -> tuple[bool, tuple[int, int, int] | None]:
        return bool(history.last), history.overtaken

    def check(shown: tuple[bool, tuple[int, int, int] | None]) -> Answer:
        premise, wrong = shown
        if wrong is None:
            return None if premise else TRIVIAL
        values = zip(("client", "step that took effect", "earlier step after it"), wrong, strict=True)
        return found("an earlier update of a client takes effect after a later one", values)

    return Condition((Read(HISTORY, overtaken),), check)


@SERVICE_PROPERTIES.declare(
    "ExpectedAnswers",
    Kind.ALWAYS,
    meaning="Each reply with an expectation in the script has the expected code and fields",
    premise="A reply was compared",
    requirements=("R12", "R13"),
    default=EXPECTATIONS,
    facts=(Note.ANSWERS,),
)
def _expected_answers(run: ServiceRun) -> Condition:
    def look(memory: Observations) -> tuple[bool, tuple[str, str] | None]:
        if memory.unexpected is None:
            return memory.compared, None
        request, answer = memory.unexpected
        return True, (wording.request(request), answer)

    return flagged(run, look, "an answer is not the expected one", ("request", "answer"))


@SERVICE_PROPERTIES.declare(
    "AllOrNothing",
    Kind.ALWAYS,
    meaning="A tree that shows one operation of a multi shows each of them, or a later update in its place",
    premise="A tree shows an operation of a multi",
    requirements=("R13",),
    notes="It covers creations and new data of znodes that no script deletes, in a multi that begins with one of "
    "these.",
    default=MULTI,
)
def _all_or_nothing(run: ServiceRun) -> Condition:
    multis = [
        {operation.data: [part.path for part in record.operations if isinstance(part, Create | SetData)]}
        for script in run.scripts
        for step in script.steps
        for record in step
        if isinstance(record, Multi)
        for operation in record.operations[:1]
        if isinstance(operation, Create | SetData)
    ]

    def halves(store: FrozenStore, _zxid: int) -> tuple[bool, tuple[str, tuple[str, ...]] | None]:
        premise = False
        for multi in multis:
            for data, paths in multi.items():
                znodes = {path: store.node(path) for path in paths}
                zxids = [znode.mzxid for znode in znodes.values() if znode is not None and znode.data == data]
                missing = [path for path, znode in znodes.items() if zxids and (not znode or znode.mzxid < zxids[0])]
                if missing and data is not None:
                    return True, (data.decode(), tuple(missing))
                premise = premise or bool(zxids)
        return premise, None

    def check(*shown: tuple[bool, tuple[str, tuple[str, ...]] | None]) -> Answer:
        for keeper, (_, half) in zip(keepers(run.setup), shown, strict=True):
            if half is not None:
                return found(
                    "one operation of a multi has taken effect, another has not",
                    (("at", keeper), ("data", half[0]), ("missing at", half[1])),
                )
        return None if any(premise for premise, _ in shown) else TRIVIAL

    return Condition(trees(run.setup, halves), check)


@SERVICE_PROPERTIES.declare(
    "SingleSystemImage",
    Kind.ALWAYS,
    meaning="Within a session, no reply shows a client an older state than it has seen",
    premise="A client has seen a state",
    requirements=("R13",),
    default=EVERYWHERE,
    facts=(Note.NEWEST,),
)
def _single_system_image(run: ServiceRun) -> Condition:
    return flagged(
        run,
        lambda memory: (memory.newest, memory.went_back),
        "a client is answered from an older state than it has seen",
        ("had seen zxid", "is shown zxid"),
    )


@SERVICE_PROPERTIES.declare(
    "AcceptedIsNotLost",
    Kind.ALWAYS,
    meaning="Every update with a positive reply is committed",
    premise="A client has received a positive reply to an update",
    requirements=("R13",),
    default=UPDATES,
    facts=(Note.ACCEPTED, Note.COMMITTED),
)
def _accepted_is_kept(run: ServiceRun) -> Condition:
    def committed(history: CommitHistory) -> frozenset[bytes]:
        return history.committed

    def check(committed: frozenset[bytes], *accepted: frozenset[bytes]) -> Answer:
        for client, values in enumerate(accepted, 1):
            for data in sorted(values - committed):
                return found(
                    "an update is accepted that is not committed", (("client", client), ("update", data.decode()))
                )
        return None if any(accepted) else TRIVIAL

    reads = (Read(HISTORY, committed), *memories(run.setup, lambda memory: memory.accepted))
    return Condition(reads, check)


@SERVICE_PROPERTIES.declare(
    "ReadAfterSyncIsFresh",
    Kind.ALWAYS,
    meaning="A read after the reply to a sync shows everything that was committed when the sync was requested",
    premise="A client has received the reply to a sync",
    requirements=("R13",),
    default=SYNCS,
    facts=(Note.FRESHNESS,),
)
def _read_after_sync(run: ServiceRun) -> Condition:
    return flagged(
        run,
        lambda memory: (memory.synced, memory.behind),
        "a read after a sync misses what was committed before the sync was asked",
        ("path", "committed by the sync", "is shown zxid"),
    )


@SERVICE_PROPERTIES.declare(
    "StaleRead",
    Kind.SOMETIMES,
    meaning="Without a sync, a read may show an older state than was committed at its request",
    requirements=("R13",),
    facts=(Note.FRESHNESS,),
)
def _stale_read(run: ServiceRun) -> Condition:
    return flagged(
        run,
        lambda memory: (True, memory.stale),
        "a read is answered from a state older than it was asked in",
        ("path", "committed when asked", "is shown zxid"),
    )
