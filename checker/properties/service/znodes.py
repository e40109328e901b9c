"""Znodes (R12): one creator of a path, unique sequence numbers, ephemeral znodes that live as long as their session."""

from __future__ import annotations

from typing import Any

from checker.engine import TRIVIAL, Property, Read
from checker.models.service.history import HISTORY, CommitHistory
from checker.present.wording import session as told_session
from checker.properties.service.projections import Answer, Run, found, keepers, memories, trees
from spec.tree.data import Kind, Znode, kind_of
from spec.tree.requests import SessionId
from spec.tree.store import FrozenStore

Owned = tuple[SessionId, str]


def one_creator(run: Run) -> Property:
    """Of several creators of one path one succeeds while the znode exists.

    No creation is refused if the path was never created.
    """

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
    return Property("OneCreator", (Read(HISTORY, creations), *told), check)


def sequence_numbers(run: Run) -> Property:  # noqa: ARG001
    """No sequence number is assigned twice under one parent during the parent's lifetime."""

    def given(history: CommitHistory) -> tuple[bool, str | None]:
        return bool(history.numbers), history.twice

    def check(given: tuple[bool, str | None]) -> Answer:
        some, twice = given
        if twice is not None:
            return found("a sequential name is given a second time", (("path", twice),))
        return None if some else TRIVIAL

    return Property("SequenceNumbersAreUnique", (Read(HISTORY, given),), check)


def ephemerals_end(run: Run) -> Property:
    """In every tree, each ephemeral znode has a session that is open there."""

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

    return Property("EphemeralsEndWithSession", trees(run.setup, orphans), check)


def _is_ephemeral(znode: Znode) -> bool:
    """Whether a session owns the znode. The owner field also marks containers and times to live (`EphemeralType`)."""
    return kind_of(znode.ephemeral_owner) is Kind.EPHEMERAL


def ephemerals_live(run: Run) -> Property:
    """An ephemeral znode is in every tree after its creation, until a client deletes it or its session ends there."""

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
    return Property("EphemeralsLiveWithSession", reads, check)
