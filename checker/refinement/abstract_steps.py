"""The abstract actions of one step of a server, as a value that the model sends to its history.

A step that concerns abstract Zab has the disk of its server before and after it, and the actions between the two, in
order. All other steps are stutters, and send nothing. Both users of the refinement, the property and the validation of
journals, name a broken condition by `named`. Nothing here loads z3.

The history variables of the refinement are reigns, with the promises and acknowledgements to each. No server stores
these values; they follow from the steps so far:

- What no later condition reads is forgotten: promises once the epoch is established, acknowledgements of NEWLEADER once
  the leader serves, and a whole reign once its leader is gone and no learner has its epoch. So the variables add few
  states to those of the model.
- Equal pasts are equal values: reigns are in the order of their epochs and servers.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from spec.durable import Durable
from spec.effects import Fact
from spec.quorum import Sid, View
from spec.txn import Txn

REFINEMENT = "RefinesAbstractZab"
"""The name of the property."""
Broken: TypeAlias = tuple[str, str]
"""An action, and the condition of it that does not hold."""
ReignKey: TypeAlias = tuple[int, Sid]
"""A reign: its epoch and its server. A server begins an epoch once, since it accepts it by that."""
NO_REIGN: ReignKey = (0, 0)
"""The zero reign; with another epoch, the reign of a server that the history does not know."""


class Disk(msgspec.Struct, frozen=True):
    """The part of a disk that abstract Zab has: both epochs, the transactions in order, and the last zxid."""

    accepted: int
    current: int
    txns: tuple[Txn, ...]
    last: int


def disk_of(durable: Durable) -> Disk:
    """The abstraction of a disk."""
    return Disk(durable.accepted_epoch, durable.current_epoch, tuple(durable.txns), durable.last_zxid)


class Name(Enum):
    """The abstract actions, by their names in `checker.symbolic.zab.actions`; the last three only keep the books."""

    BEGIN = "begin"
    PROMISE = "promise"
    ESTABLISH = "establish"
    SYNCHRONISE = "synchronise"
    ENTER = "enter"
    PROPOSE = "propose"
    BEGIN_BROADCAST = "begin_broadcast"
    ACK = "ack"
    VOID_ACKS = "void_acks"
    SERVE = "serve"
    COMMIT = "commit"
    FOLLOW = "follow"
    """A learner has the epoch of this reign, and may take steps of it until it leaves."""
    LEAVE = "leave"
    """The server no longer leads or follows."""


class AbstractAction(msgspec.Struct, frozen=True):
    """An abstract action of a reign.

    `zxid` belongs to a transaction, or is the bound of an action. `quorum` is the set that the leader
    counted, and `view` the view of a reign that begins. `learner` is the server whose acknowledgements become void.
    """

    name: Name
    reign: ReignKey
    zxid: int = 0
    quorum: frozenset[Sid] = frozenset()
    txns: tuple[Txn, ...] = ()
    view: View | None = None
    learner: Sid = 0


class AbstractSteps(Fact, frozen=True):
    """A step of `server` that concerns abstract Zab."""

    server: Sid
    before: Disk
    calls: tuple[AbstractAction, ...]
    after: Disk


def named(broken: Sequence[Broken]) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The clause of a finding, the first broken condition, and the others as its values. `broken` has at least one."""
    (action, condition), *others = broken
    return f"{action}: {condition}", tuple((f"and at {name}", also) for name, also in others)


class Reign(msgspec.Struct, frozen=True):
    """One attempt of a server to lead, from the choice of its epoch on.

    - `began_in` is currentEpoch of its server then, `initial` and `initial_last` its log and last zxid.
    - `acked` has the acknowledged transactions of each server, `committed` the zxids with the quorum of each.
    - `learners` have its epoch from LEADERINFO and have not left; `over`: its server no longer leads.
    """

    key: ReignKey
    view: View
    began_in: int
    initial: tuple[Txn, ...]
    initial_last: int
    history: tuple[Txn, ...] = ()
    history_last: int = 0
    established: bool = False
    served: bool = False
    promised: frozenset[Sid] = frozenset()
    entered: frozenset[Sid] = frozenset()
    acked: frozenset[tuple[Sid, Txn]] = frozenset()
    committed: frozenset[tuple[Txn, frozenset[Sid]]] = frozenset()
    learners: frozenset[Sid] = frozenset()
    over: bool = False


class ReignHistory(msgspec.Struct, frozen=True):
    """All reigns that some later step may concern.

    `lasts` has the last zxid of each server whose disk has another one. Only zxids that no transaction has differ: a
    snapshot may be named "epoch:0", and a TRUNC to such a zxid leaves an earlier one.
    """

    known: tuple[Reign, ...] = ()
    lasts: tuple[tuple[Sid, int], ...] = ()

    def last_of(self, server: Sid, on_disk: int) -> int:
        """The last zxid of a server in the abstract state."""
        return dict(self.lasts).get(server, on_disk)

    def with_last(self, server: Sid, last: int, on_disk: int) -> ReignHistory:
        """These with the last zxid of a server."""
        lasts = {**dict(self.lasts), server: last}
        if last == on_disk:
            del lasts[server]
        return ReignHistory(self.known, tuple(sorted(lasts.items())))

    def find(self, key: ReignKey) -> Reign | None:
        """The reign of this key."""
        return next((reign for reign in self.known if reign.key == key), None)

    def entered_by(self, server: Sid, epoch: int) -> ReignKey:
        """The reign of an epoch that concerns this server; the server 0 stands for one that is not known."""
        own = (r.key for r in self.known if r.key[0] == epoch and (server in r.learners or server == r.key[1]))
        return next(own, (epoch, 0))

    def with_reign(self, reign: Reign) -> ReignHistory:
        """These with another value of one reign."""
        others = (each for each in self.known if each.key != reign.key)
        return replace(self, known=tuple(sorted((*others, reign), key=lambda each: each.key)))

    def left_by(self, server: Sid) -> ReignHistory:
        """These after a server has stopped to lead or to follow."""
        return replace(self, known=tuple(_left(reign, server) for reign in self.known))

    def needed(self) -> ReignHistory:
        """These without the values that no later condition reads."""
        return replace(self, known=tuple(_needed(each) for each in self.known if each.learners or not each.over))


def _left(reign: Reign, server: Sid) -> Reign:
    return replace(reign, learners=reign.learners - {server}, over=reign.over or reign.key[1] == server)


def _needed(reign: Reign) -> Reign:
    if reign.established and reign.promised:
        reign = replace(reign, promised=frozenset())
    if reign.served and reign.entered:
        reign = replace(reign, entered=frozenset())
    if reign.over:
        acked = frozenset((server, txn) for server, txn in reign.acked if server in reign.learners)
        reign = replace(reign, promised=frozenset(), entered=frozenset(), committed=frozenset(), acked=acked)
    return reign
