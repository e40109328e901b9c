"""Guarantees (R13): order, all or nothing, a single system image, durability, and the effect of `sync`."""

from __future__ import annotations

from checker.engine import TRIVIAL, Kind, Property, Read
from checker.models.service.history import HISTORY, CommitHistory
from checker.properties.service.projections import Answer, Run, flagged, found, keepers, memories, trees
from spec.tree.requests import Create, Multi, SetData
from spec.tree.store import FrozenStore


def updates_in_order(run: Run) -> Property:  # noqa: ARG001
    """The updates of one client take effect in the order of its requests."""

    def overtaken(history: CommitHistory) -> tuple[bool, tuple[int, int, int] | None]:
        return bool(history.last), history.overtaken

    def check(shown: tuple[bool, tuple[int, int, int] | None]) -> Answer:
        some, wrong = shown
        if wrong is None:
            return None if some else TRIVIAL
        values = zip(("client", "step that took effect", "earlier step after it"), wrong, strict=True)
        return found("an earlier update of a client takes effect after a later one", values)

    return Property("UpdatesInOrder", (Read(HISTORY, overtaken),), check)


def all_or_nothing(run: Run) -> Property:
    """If a tree has one operation of a multi, it has each of them, or a later update in its place.

    It covers creations and new data of znodes that no script deletes, in a multi that begins with one of these.
    """
    multis = [
        {operation.data: [each.path for each in record.operations if isinstance(each, Create | SetData)]}
        for script in run.scripts
        for step in script.steps
        for record in step
        if isinstance(record, Multi)
        for operation in record.operations[:1]
        if isinstance(operation, Create | SetData)
    ]

    def halves(store: FrozenStore, _zxid: int) -> tuple[bool, tuple[str, tuple[str, ...]] | None]:
        some = False
        for multi in multis:
            for data, paths in multi.items():
                znodes = {path: store.node(path) for path in paths}
                zxids = [znode.mzxid for znode in znodes.values() if znode is not None and znode.data == data]
                missing = [path for path, znode in znodes.items() if zxids and (not znode or znode.mzxid < zxids[0])]
                if missing and data is not None:
                    return True, (data.decode(), tuple(missing))
                some = some or bool(zxids)
        return some, None

    def check(*shown: tuple[bool, tuple[str, tuple[str, ...]] | None]) -> Answer:
        for keeper, (_, half) in zip(keepers(run.setup), shown, strict=True):
            if half is not None:
                return found(
                    "one operation of a multi has taken effect, another has not",
                    (("at", keeper), ("data", half[0]), ("missing at", half[1])),
                )
        return None if any(some for some, _ in shown) else TRIVIAL

    return Property("AllOrNothing", trees(run.setup, halves), check)


def single_system_image(run: Run) -> Property:
    """Within a session, no server answers a client from an older state than the client has seen."""
    return flagged(
        run,
        "SingleSystemImage",
        lambda memory: (memory.newest, memory.went_back),
        "a client is answered from an older state than it has seen",
        ("had seen zxid", "is shown zxid"),
    )


def accepted_is_kept(run: Run) -> Property:
    """Every update with a positive reply is committed."""

    def committed(history: CommitHistory) -> frozenset[bytes]:
        return history.committed

    def check(committed: frozenset[bytes], *accepted: frozenset[bytes]) -> Answer:
        for client, told in enumerate(accepted, 1):
            for data in sorted(told - committed):
                return found(
                    "an update is accepted that is not committed", (("client", client), ("update", data.decode()))
                )
        return None if any(accepted) else TRIVIAL

    reads = (Read(HISTORY, committed), *memories(run.setup, lambda memory: memory.accepted))
    return Property("AcceptedIsNotLost", reads, check)


def read_after_sync(run: Run) -> Property:
    """A read after the reply to a sync sees every transaction that was committed when the sync was requested."""
    return flagged(
        run,
        "ReadAfterSyncIsFresh",
        lambda memory: (memory.synced, memory.behind),
        "a read after a sync misses what was committed before the sync was asked",
        ("path", "committed by the sync", "is shown zxid"),
    )


def stale_read(run: Run) -> Property:
    """A witness: a read is answered from an older state than was committed when it was requested."""
    return flagged(
        run,
        "StaleRead",
        lambda memory: (True, memory.stale),
        "a read is answered from a state older than it was asked in",
        ("path", "committed when asked", "is shown zxid"),
        Kind.SOMETIMES,
    )
