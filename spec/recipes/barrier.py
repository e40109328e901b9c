"""A double barrier: clients start together when enough of them have registered, and all leave together.

Each participant registers with an ephemeral znode below the root. The one that counts enough znodes creates the znode
`ready`, which lets all in. A participant that leaves deletes its znode and waits for the lowest one. The lowest waits
for the highest, and is the last to delete its znode.

Rules of this module:

- A barrier is used once: `ready` is persistent and stays.
- The watch on `ready` is set before the client registers, and again after each reconnect.
- A creation whose reply was lost is repeated: the id belongs to this client, so an existing znode is its own.
- In an open barrier, a client enters only if its znode exists. A client whose session has expired is out.
- Others are watched with getData, not with exists, so that no watch remains on a path without a znode.
- A client without a connection is not inside, as far as it knows.

Source: ZooKeeper's recipes, "Double Barriers"; Curator's `DistributedDoubleBarrier`.
"""

import enum
from collections.abc import Callable, Mapping

import msgspec
from msgspec.structs import replace

from spec.effects import Observe, Step
from spec.recipes.events import (
    Answered,
    Ask,
    Connected,
    Event,
    Expired,
    Failed,
    Join,
    Leave,
    Notified,
    RecipeStep,
    Suspended,
    Unanswered,
    Withdrawn,
)
from spec.recipes.member import Link
from spec.tree.data import OPEN_ACL_UNSAFE, Record
from spec.tree.paths import below
from spec.tree.replies import ChildrenReply, Code, Create2Reply, DataReply, StatReply
from spec.tree.requests import Create2, CreateMode, Delete, Exists, GetChildren, GetData

READY = "ready"


class BarrierPhase(enum.Enum):
    """The phase of a client; most phases wait for the reply to one request."""

    OUT = "out"
    CHECKING = "checking"  # asked whether the barrier is open, with a watch
    REGISTERING = "registering"  # asked to create its znode
    COUNTING = "counting"  # asked for the children
    OPENING = "opening"  # all have registered: asked to create `ready`
    GATHERING = "gathering"  # until `ready` is created
    INSIDE = "inside"
    LISTING = "listing"  # leaves: asked for the children
    DELETING = "deleting"  # asked to delete its znode
    WATCHING = "watching"  # asked for the znode of another, with a watch
    AWAITING = "awaiting"  # until the watch fires
    LEFT = "left"  # all have left


class BarrierRules(msgspec.Struct, frozen=True):
    """A barrier for `size` clients."""

    root: str
    size: int


class BarrierMember(msgspec.Struct, frozen=True):
    """A client's part.

    `wanted`: it is to enter. `leaves`: it is to leave. `lost`: the reply that its phase waits for will not arrive.
    `notified`: a watch has fired before that reply. `open`: the barrier was open when it checked. `registered`: its
    znode was created. `awaited` is the path that it watches.
    """

    phase: BarrierPhase = BarrierPhase.OUT
    link: Link = Link.CONNECTED
    wanted: bool = False
    leaves: bool = False
    lost: bool = False
    notified: bool = False
    open: bool = False
    registered: bool = False
    id: str = ""
    awaited: str | None = None

    @property
    def inside(self) -> bool:
        """Whether it is inside, as far as it knows."""
        return self.phase is BarrierPhase.INSIDE and self.link is Link.CONNECTED


Done = RecipeStep[BarrierMember]


def step(rules: BarrierRules, member: BarrierMember, event: Event) -> Done:
    """The step of a participant on an event."""
    match event:
        case Join(id) if member.phase is BarrierPhase.OUT:
            return _begin(rules, replace(member, wanted=True, id=id))
        case Leave() if member.phase is BarrierPhase.INSIDE:
            leaving = replace(member, leaves=True)
            return _list(rules, leaving) if member.link is Link.CONNECTED else Step(leaving)
        case Answered() if member.phase in _ANSWERS:
            return _ANSWERS[member.phase](rules, member, event)
        case Unanswered() if member.phase in _ANSWERS:
            lost = replace(member, lost=True)
            return _repeat(rules, lost) if member.link is Link.CONNECTED else Step(lost)
        case Notified(_, path) if path == member.awaited and member.link is Link.CONNECTED:
            return _notified(rules, member)
        case Suspended():
            return Step(replace(member, link=Link.SUSPENDED))
        case Expired():
            # The znode is gone with the session; a client that has not begun keeps its wish.
            if member.phase in (BarrierPhase.OUT, BarrierPhase.LEFT):
                return Step(replace(member, link=Link.EXPIRED))
            return Step(BarrierMember(link=Link.EXPIRED), (Observe(Withdrawn()),))
        case Connected(resumed, id):
            connected = replace(member, link=Link.CONNECTED)
            return _repeat(rules, connected) if resumed else _begin(rules, replace(connected, id=id))
        case _:
            return Step(member)


def _begin(rules: BarrierRules, member: BarrierMember) -> Done:
    able = member.phase is BarrierPhase.OUT and member.wanted and member.link is Link.CONNECTED
    return _check(rules, member) if able else Step(member)


def _repeat(rules: BarrierRules, member: BarrierMember) -> Done:
    """Continue in the same session: what the client watched, or asked without a reply, is read again."""
    match member.phase:
        case BarrierPhase.OUT:
            return _begin(rules, member)
        case BarrierPhase.INSIDE if member.leaves:
            return _list(rules, member)
        case BarrierPhase.INSIDE | BarrierPhase.LEFT:
            return Step(member)
        case BarrierPhase.GATHERING:
            return _check(rules, member)
        case BarrierPhase.AWAITING:
            return _list(rules, member)
        case _ if not member.lost:
            return Step(member)  # a reply, or Unanswered, is still to arrive
        case _ if member.leaves:
            return _list(rules, member)
        case _:
            return _check(rules, member)


def _notified(rules: BarrierRules, member: BarrierMember) -> Done:
    """Handle the watch: the barrier is open, or another one's znode is gone."""
    match member.phase:
        case BarrierPhase.GATHERING:
            return _enter(member)
        case BarrierPhase.AWAITING:
            return _list(rules, member)
        case _:
            return Step(replace(member, notified=True))


# -- single actions ------------------------------------------------------------------------------------------


def _ask(member: BarrierMember, phase: BarrierPhase, record: Record) -> Done:
    return Step(replace(member, phase=phase, lost=False), (Ask(record),))


def _check(rules: BarrierRules, member: BarrierMember) -> Done:
    ready = below(rules.root, READY)
    return _ask(replace(member, awaited=ready, notified=False), BarrierPhase.CHECKING, Exists(ready, True))


def _count(rules: BarrierRules, member: BarrierMember) -> Done:
    return _ask(member, BarrierPhase.COUNTING, GetChildren(rules.root, False))


def _register(rules: BarrierRules, member: BarrierMember) -> Done:
    record = Create2(below(rules.root, member.id), b"", OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL)
    return _ask(member, BarrierPhase.REGISTERING, record)


def _enter(member: BarrierMember) -> Done:
    return Step(BarrierMember(BarrierPhase.INSIDE, member.link, id=member.id))


def _list(rules: BarrierRules, member: BarrierMember) -> Done:
    return _ask(replace(member, awaited=None, notified=False), BarrierPhase.LISTING, GetChildren(rules.root, False))


def _refuse(member: BarrierMember, code: Code) -> Done:
    return Step(BarrierMember(link=member.link), (Observe(Failed(code)), Observe(Withdrawn())))


# -- replies -------------------------------------------------------------------------------------------------


def _checked(rules: BarrierRules, member: BarrierMember, answer: Answered) -> Done:
    """Register, unless the client may have registered before; the next count tells."""
    is_open = isinstance(answer.reply, StatReply)
    if not is_open and answer.code is not Code.NO_NODE:
        return _refuse(member, answer.code)
    member = replace(member, open=is_open)
    return _count(rules, member) if is_open or member.registered else _register(rules, member)


def _registered(rules: BarrierRules, member: BarrierMember, answer: Answered) -> Done:
    if not isinstance(answer.reply, Create2Reply) and answer.code is not Code.NODE_EXISTS:
        return _refuse(member, answer.code)
    return _count(rules, replace(member, registered=True))


def participants(children: tuple[str, ...]) -> list[str]:
    """The names of the registered clients, from the lowest to the highest."""
    return sorted(name for name in children if name != READY)


def is_full(rules: BarrierRules, registered: list[str]) -> bool:
    """Whether enough clients have registered."""
    return len(registered) >= rules.size


def _counted(rules: BarrierRules, member: BarrierMember, answer: Answered) -> Done:
    """Enter an open barrier, open a full one, or wait."""
    if not isinstance(answer.reply, ChildrenReply):
        return _refuse(member, answer.code)
    registered = participants(answer.reply.children)
    if member.id not in registered:
        return _refuse(member, Code.NODE_EXISTS) if member.open else _register(rules, member)
    if member.open or member.notified:
        return _enter(member)
    if not is_full(rules, registered):
        return Step(replace(member, phase=BarrierPhase.GATHERING))
    ready = Create2(below(rules.root, READY), b"", OPEN_ACL_UNSAFE, CreateMode.PERSISTENT)
    return _ask(member, BarrierPhase.OPENING, ready)


def _opened(_rules: BarrierRules, member: BarrierMember, answer: Answered) -> Done:
    opened = isinstance(answer.reply, Create2Reply) or answer.code is Code.NODE_EXISTS
    return _enter(member) if opened else _refuse(member, answer.code)


def _listed(rules: BarrierRules, member: BarrierMember, answer: Answered) -> Done:
    """The cases of the recipe's `leave`, in its order."""
    if not isinstance(answer.reply, ChildrenReply):
        return _refuse(member, answer.code)
    registered = participants(answer.reply.children)
    awaited = whom_to_await(registered, member.id)
    if awaited is not None:
        path = below(rules.root, awaited)
        return _ask(replace(member, awaited=path, notified=False), BarrierPhase.WATCHING, GetData(path, True))
    if member.id in registered:
        return _ask(member, BarrierPhase.DELETING, Delete(below(rules.root, member.id), -1))
    return Step(BarrierMember(BarrierPhase.LEFT, member.link), (Observe(Withdrawn()),))


def whom_to_await(registered: list[str], id: str) -> str | None:
    """The participant to wait for; None if the client's own znode is to be deleted, or if all have left."""
    if not registered or registered == [id]:
        return None
    if registered[0] == id:
        return registered[-1]
    return None if id in registered else registered[0]


def _deleted(rules: BarrierRules, member: BarrierMember, answer: Answered) -> Done:
    return _list(rules, member) if answer.code in (Code.OK, Code.NO_NODE) else _refuse(member, answer.code)


def _watched(rules: BarrierRules, member: BarrierMember, answer: Answered) -> Done:
    if member.notified or answer.code is Code.NO_NODE:
        return _list(rules, member)
    if not isinstance(answer.reply, DataReply):
        return _refuse(member, answer.code)
    return Step(replace(member, phase=BarrierPhase.AWAITING))


_ANSWERS: Mapping[BarrierPhase, Callable[[BarrierRules, BarrierMember, Answered], Done]] = {
    BarrierPhase.CHECKING: _checked,
    BarrierPhase.REGISTERING: _registered,
    BarrierPhase.COUNTING: _counted,
    BarrierPhase.OPENING: _opened,
    BarrierPhase.LISTING: _listed,
    BarrierPhase.DELETING: _deleted,
    BarrierPhase.WATCHING: _watched,
}
