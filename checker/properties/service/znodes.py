"""Znodes (R12): one creator of a path, unique sequence numbers, ephemeral znodes that live as long as their session."""

from __future__ import annotations

from typing import Any

from checker.engine import TRIVIAL, Kind, Read
from checker.models.service.history import HISTORY, CommitHistory
from checker.models.service.observations import Note
from checker.present.wording import session as told_session
from checker.properties.registry import Answer, Condition
from checker.properties.service.projections import (
    CREATES,
    EPHEMERAL,
    SEQUENTIAL,
    SERVICE_PROPERTIES,
    Run,
    found,
    keepers,
    memories,
    trees,
)
from spec.tree.data import Kind as ZnodeKind
from spec.tree.data import Znode, kind_of
from spec.tree.requests import SessionId
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
def _one_creator(run: Run) -> Condition:
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
                told = (("path", path), ("clients", who), ("creations", times.get(path, 0)))
                return found("more clients are told that they created a znode than have", told)
        for client, (_, refused) in enumerate(clients, 1):
            for path in sorted(refused - times.keys()):
                return found("a creation is refused though nobody has created it", (("path", path), ("client", client)))
        return None

    told = memories(run.setup, lambda memory: (memory.created, memory.refused))
    return Condition((Read(HISTORY, creations), *told), check)


@SERVICE_PROPERTIES.declare(
    "SequenceNumbersAreUnique",
    Kind.ALWAYS,
    meaning="No sequential name is assigned twice under one parent during its lifetime",
    premise="A sequential name was assigned",
    requirements=("R12",),
    default=SEQUENTIAL,
    facts=(Note.NUMBERS,),
)
def _sequence_numbers(_: Run) -> Condition:
    def given(history: CommitHistory) -> tuple[bool, str | None]:
        return bool(history.numbers), history.twice

    def check(given: tuple[bool, str | None]) -> Answer:
        some, twice = given
        if twice is not None:
            return found("a sequential name is given a second time", (("path", twice),))
        return None if some else TRIVIAL

    return Condition((Read(HISTORY, given),), check)


@SERVICE_PROPERTIES.declare(
    "EphemeralsEndWithSession",
    Kind.ALWAYS,
    meaning="In every tree, each ephemeral znode belongs to a session that is open there",
    premise="A tree has an ephemeral znode",
    requirements=("R12",),
    default=EPHEMERAL,
)
def _ephemerals_end(run: Run) -> Condition:
    def orphans(store: FrozenStore, _zxid: int) -> tuple[bool, tuple[Owned, ...]]:
        open_ = {session for session, _ in store.sessions}
        owned = [(znode.ephemeral_owner, path) for path, znode in store.nodes if _is_ephemeral(znode)]
        return bool(owned), tuple((session, path) for session, path in owned if session not in open_)

    def check(*shown: tuple[bool, tuple[Owned, ...]]) -> Answer:
        if not any(some for some, _ in shown):
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
def _ephemerals_live(run: Run) -> Condition:
    def living(store: FrozenStore, zxid: int) -> tuple[int, frozenset[SessionId], frozenset[Owned]]:
        owned = frozenset((znode.ephemeral_owner, path) for path, znode in store.nodes if _is_ephemeral(znode))
        return zxid, frozenset(session for session, _ in store.sessions), owned

    def ephemerals(history: CommitHistory) -> frozenset[tuple[SessionId, str, int]] | None:
        return history.ephemerals or None

    def check(created: frozenset[tuple[SessionId, str, int]], *there: Any) -> Answer:
        for keeper, (seen, open_, owned) in zip(keepers(run.setup), there, strict=True):
            for session, path, zxid in sorted(created):
                if zxid <= seen and session in open_ and (session, path) not in owned:
                    return found(
                        "an ephemeral znode is gone while its session is open",
                        (("at", keeper), ("path", path), ("session", told_session(session))),
                    )
        return None

    reads = (Read(HISTORY, ephemerals), *trees(run.setup, living))
    return Condition(reads, check)
