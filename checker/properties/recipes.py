"""What recipes are held to, by name: mutual exclusion as clients believe it, fencing, nobody forgotten, no herd.

Rules of this module:

- Belief is one thing and truth another. A client believes what its recipe's state says; whose znode is first in the
  leader's tree is the truth, written down as `reigns` by those who need it.
- A property names the facts it reads, so that others are not written down.
- Fair are the steps of servers, networks and client libraries, and that whoever holds gives it back. A fault, and
  what an application does of its own accord, need never happen.

Source: R15 to R22; each property names the row it is for.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from checker.engine import TRIVIAL, Finding, Kind, Move, Property, Read
from checker.engine.model import Trivial
from checker.models.recipes import LED, REIGNS, RESOURCE, ROOT, TOLD, Client, Facts, RecipeSetup, first_of
from checker.models.recipes.client import Wish
from checker.models.recipes.reigns import Leaders, Reigns, Told
from checker.models.recipes.resource import Resource
from checker.models.service import FAULTS, FAULTS_LEFT, LEADER, Leader, client_name, watches_name
from checker.properties.patterns import ParameterError
from checker.properties.unknown import UnknownPropertyError

Answer = Finding | Trivial | None
FREE_WILL = frozenset({Wish.WANT, Wish.AGAIN, Wish.QUIT, Wish.WRITE})
NEED_NOT = FAULTS | {"remove"} | {wish.value for wish in FREE_WILL}
"""The actions that need never happen."""


def fair(rule: str, move: Move) -> Hashable:
    """The unit of fairness of a move: what one rule does under one name, unless it need not."""
    return None if move.action in NEED_NOT else (rule, move.action)


# -- what is read --------------------------------------------------------------------------------------------


def _clients(setup: RecipeSetup, see: Callable[[Client], Hashable]) -> tuple[Read, ...]:
    """A read of each client; a client that has crashed is seen as False."""
    return tuple(
        Read(client_name(client), lambda state: False if state.crashed else see(state)) for client in setup.client_ids
    )


def _holders(setup: RecipeSetup) -> tuple[Read, ...]:
    return _clients(setup, lambda client: setup.machine.holds(client.recipe))


def _waiters(setup: RecipeSetup) -> tuple[Read, ...]:
    return _clients(setup, lambda client: setup.machine.waits(client.recipe))


def _those(seen: Iterable[object]) -> tuple[int, ...]:
    """The clients of which it is true."""
    return tuple(client for client, true in enumerate(seen, 1) if true)


# -- always --------------------------------------------------------------------------------------------------


def one_holder(setup: RecipeSetup) -> Property:
    """R15, R16, R18, R21, R22: no two clients believe at once that they hold."""

    def check(*holds: bool) -> Answer:
        holders = _those(holds)
        if len(holders) > 1:
            return Finding("two clients believe at once that they hold", (("clients", holders),))
        return None if holders else TRIVIAL

    return Property("OneHolder", _holders(setup), check)


def holds_by_right(setup: RecipeSetup) -> Property:
    """R16, R18: whoever believes that it holds has had the first znode."""
    machine = setup.machine

    def token(client: Client) -> Hashable:
        return machine.token(client.recipe) if machine.holds(client.recipe) else False

    def check(reigns: Reigns, *tokens: Any) -> Answer:
        held = {client: token for client, token in enumerate(tokens, 1) if token is not False}
        wrong = tuple(client for client, token in held.items() if token not in reigns.past)
        if wrong:
            return Finding("a client believes that it holds, and its znode was never first", (("clients", wrong),))
        return None if held else TRIVIAL

    return Property("HoldsByRight", (Read(REIGNS), *_clients(setup, token)), check)


def fenced_in_order(_: RecipeSetup) -> Property:
    """R20: the resource accepts no write of an earlier reign after one of a later."""

    def check(resource: Resource) -> Answer:
        if resource.stale:
            said = "a write of an earlier reign was accepted after one of a later"
            return Finding(said, (("writes accepted out of order", resource.stale),))
        return None if resource.reign >= 0 else TRIVIAL

    return Property("FencedInOrder", (Read(RESOURCE),), check)


def rightful_is_accepted(_: RecipeSetup) -> Property:
    """R20: the fence keeps out nobody whose znode is first."""

    def check(resource: Resource) -> Answer:
        if resource.rejected:
            return Finding("a write was rejected while its znode was first", (("rejected", resource.rejected),))
        return None if resource.reign >= 0 else TRIVIAL

    return Property("RightfulIsAccepted", (Read(RESOURCE),), check)


def one_is_told(_: RecipeSetup) -> Property:
    """R16, R17: no event notifies more than one client."""

    def check(told: Told) -> Answer:
        if told.clients > 1:
            return Finding("one event has notified several clients", (("path", told.path), ("clients", told.clients)))
        return None if told.clients else TRIVIAL

    return Property("OneIsTold", (Read(TOLD),), check)


def no_watch_left(setup: RecipeSetup) -> Property:
    """R16: no watch is left behind at a path where no znode is any more, nor will be."""

    def paths(watches: Iterable[Any]) -> Hashable:
        return frozenset(path for _, _, path in watches if path.startswith(f"{ROOT}/"))

    def tree(leader: Leader) -> Hashable:
        return frozenset(path for path, _ in leader.store.nodes)

    def check(there: frozenset[str], *watched: frozenset[str]) -> Answer:
        left = sorted({path for paths in watched for path in paths if path not in there})
        if left:
            return Finding("a watch is left where no znode is", (("paths", tuple(left)),))
        return None if any(watched) else TRIVIAL

    reads = (Read(watches_name(server), paths) for server in setup.service.server_ids)
    return Property("NoWatchLeft", (Read(LEADER, tree), *reads), check)


def follows_a_leader(_: RecipeSetup) -> Property:
    """R16: whoever is taken for the leader knows, or has known, that it leads."""

    def check(leaders: Leaders) -> Answer:
        if leaders.mistaken is not None:
            said = "a client is taken for the leader, and has never come to know that it leads"
            return Finding(said, (("znode", leaders.mistaken),))
        return None if leaders.led else TRIVIAL

    return Property("FollowsALeader", (Read(LED),), check)


def held_until_released(setup: RecipeSetup) -> Property:
    """R18: a lock is held until it was released as often as it was taken, unless it is lost."""

    def check(*taken: Any) -> Answer:
        early = tuple(client for client, each in enumerate(taken, 1) if each == "given up")
        if early:
            return Finding("a lock was given up by a release too few", (("clients", early),))
        return None if "twice" in taken else TRIVIAL

    def see(client: Client) -> Hashable:
        if client.given_up:
            return "given up"
        return "twice" if client.taken > 1 else "once or not"

    return Property("HeldUntilReleased", _clients(setup, see), check)


# -- sometimes -----------------------------------------------------------------------------------------------


def held(setup: RecipeSetup) -> Property:
    """Some client holds."""

    def check(*holds: bool) -> Answer:
        return Finding("a client holds", (("client", _those(holds)[0]),)) if any(holds) else None

    return Property("Held", _holders(setup), check, Kind.SOMETIMES)


def two_hold(setup: RecipeSetup) -> Property:
    """R20, the window: a client whose session has expired believes that it holds, while another does."""

    def check(*holds: bool) -> Answer:
        holders = _those(holds)
        return Finding("two clients believe that they hold", (("clients", holders),)) if len(holders) > 1 else None

    return Property("TwoHold", _holders(setup), check, Kind.SOMETIMES)


def stale_writes(setup: RecipeSetup, count: Any) -> Property:
    """R20: so many writes of earlier reigns are let through in one run."""
    most = setup.writes * setup.clients
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= most:
        raise ParameterError(f"{count!r} is no number of writes here", f"write 1 to {most}")

    def check(resource: Resource) -> Answer:
        if resource.stale >= count:
            return Finding(f"{count} writes out of order were accepted")
        return None

    return Property(f"StaleWrites({count})", (Read(RESOURCE),), check, Kind.SOMETIMES)


# -- final ---------------------------------------------------------------------------------------------------


def nobody_waits(setup: RecipeSetup) -> Property:
    """R15 to R22: where nothing more can happen, no client waits."""

    def check(*waits: bool) -> Answer:
        waiting = _those(waits)
        return Finding("clients wait, and nothing more can happen", (("clients", waiting),)) if waiting else None

    return Property("NobodyWaits", _waiters(setup), check, Kind.FINAL)


def nothing_is_left(setup: RecipeSetup) -> Property:
    """R19: where nothing more can happen, no znode is left that no client knows of."""

    def paths(leader: Leader) -> Hashable:
        return frozenset(path for path, _ in leader.store.nodes if path.startswith(ROOT) and path != ROOT)

    def known(client: Client) -> Hashable:
        return setup.machine.token(client.recipe) is not None

    def check(there: frozenset[str], *knows: bool) -> Answer:
        # Every client that has a znode has one, or two where it has announced itself.
        if there and not any(knows):
            return Finding("znodes are left that no client knows of", (("paths", tuple(sorted(there))),))
        return None

    return Property("NothingIsLeft", (Read(LEADER, paths), *_clients(setup, known)), check, Kind.FINAL)


# -- liveness ------------------------------------------------------------------------------------------------


def somebody_holds(setup: RecipeSetup) -> Property:
    """R18: what is free is taken by some live waiter, on every fair run."""
    machine = setup.machine

    def see(client: Client) -> Hashable:
        if machine.holds(client.recipe):
            return "holds"
        return "waits" if machine.waits(client.recipe) else "out"

    def check(*seen: Any) -> Answer:
        if "holds" in seen:
            return Finding("a client holds")
        return None if "waits" in seen else Finding("nobody waits")

    return Property("SomebodyHolds", _clients(setup, see), check, Kind.EVENTUALLY, fair=fair)


def every_waiter_is_served(setup: RecipeSetup) -> Property:
    """R18: whoever waits comes to hold, or waits no more, on every fair run."""

    def check(*waits: bool) -> Answer:
        return None if any(waits) else Finding("nobody waits")

    return Property("EveryWaiterIsServed", _waiters(setup), check, Kind.EVENTUALLY, fair=fair)


def the_holder_learns(setup: RecipeSetup) -> Property:
    """R20: whoever believes that it holds, and whose znode is not first, comes to know it; releasing is not knowing."""
    machine = setup.machine

    def token(client: Client) -> Hashable:
        return machine.token(client.recipe) if machine.holds(client.recipe) else False

    def first(leader: Leader) -> Hashable:
        found = first_of(setup, leader.store)
        return 0 if found is None else found[1].czxid

    def check(present: int, *tokens: Any) -> Answer:
        wrong = any(token not in (False, present) for token in tokens)
        return None if wrong else Finding("nobody believes that it holds what it does not")

    def by_itself(rule: str, move: Move) -> Hashable:
        return None if move.action in {wish.value for wish in Wish} else fair(rule, move)

    reads = (Read(LEADER, first), *_clients(setup, token))
    return Property("TheHolderLearns", reads, check, Kind.EVENTUALLY, fair=by_itself)


def recovers(setup: RecipeSetup) -> Property:
    """R19: from every state some run comes to one in which nobody waits."""

    def check(*waits: bool) -> Answer:
        return None if any(waits) else Finding("nobody waits")

    return Property("Recovers", _waiters(setup), check, Kind.RECOVERABLE, fair=fair)


def recovers_by_expiry(setup: RecipeSetup) -> Property:
    """R19: from every state in which a session may yet expire, some run comes to one in which nobody waits."""

    def check(may_expire: bool, *waits: bool) -> Answer:
        if not may_expire:
            return Finding("no session may expire any more")
        return None if any(waits) else Finding("nobody waits")

    left = Read(FAULTS_LEFT, lambda left: left.expiries > 0)
    return Property("RecoversByExpiry", (left, *_waiters(setup)), check, Kind.RECOVERABLE, fair=fair)


# -- all of them ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """A property that can be named; `parameter` says what it takes. `facts` are written down for it."""

    name: str
    kind: Kind
    meaning: str
    build: Callable[[RecipeSetup, Any], Property]
    facts: frozenset[Facts] = field(default_factory=frozenset)
    parameter: str = ""
    needs_writes: bool = False
    needs_announcements: bool = False


def _plain(name: str, kind: Kind, meaning: str, make: Callable[[RecipeSetup], Property], *facts: Facts) -> Entry:
    return Entry(name, kind, meaning, lambda setup, _: make(setup), frozenset(facts))


_WRITTEN = frozenset({Facts.REIGNS})
_ALL = (
    _plain("OneHolder", Kind.ALWAYS, "no two clients believe at once that they hold", one_holder),
    _plain("HoldsByRight", Kind.ALWAYS, "whoever holds has had the first znode", holds_by_right, Facts.REIGNS),
    Entry("FencedInOrder", Kind.ALWAYS, "the guarded resource accepts no write of an earlier reign after a later one",
          lambda setup, _: fenced_in_order(setup), _WRITTEN, needs_writes=True),
    Entry("RightfulIsAccepted", Kind.ALWAYS, "the guarded resource rejects no write whose znode is first",
          lambda setup, _: rightful_is_accepted(setup), _WRITTEN, needs_writes=True),
    _plain("OneIsTold", Kind.ALWAYS, "no event notifies more than one client", one_is_told, Facts.TOLD),
    _plain("NoWatchLeft", Kind.ALWAYS, "no watch is left where no znode is any more", no_watch_left),
    Entry("FollowsALeader", Kind.ALWAYS, "whoever is taken for the leader has known that it is first",
          lambda setup, _: follows_a_leader(setup), frozenset({Facts.LED}), needs_announcements=True),
    _plain("HeldUntilReleased", Kind.ALWAYS, "a lock is held until released as often as taken", held_until_released),
    _plain("Held", Kind.SOMETIMES, "some client holds", held),
    _plain("TwoHold", Kind.SOMETIMES, "two clients believe at once that they hold", two_hold),
    Entry("StaleWrites", Kind.SOMETIMES, "so many writes of earlier reigns are accepted in one run", stale_writes,
          _WRITTEN, "a number of writes", needs_writes=True),
    _plain("NobodyWaits", Kind.FINAL, "where nothing more can happen, no client waits", nobody_waits),
    _plain("NothingIsLeft", Kind.FINAL, "where nothing more can happen, every znode is known to a client",
           nothing_is_left),
    _plain("SomebodyHolds", Kind.EVENTUALLY, "what is free is taken by some live waiter", somebody_holds),
    _plain("EveryWaiterIsServed", Kind.EVENTUALLY, "whoever waits comes to hold, or gives up", every_waiter_is_served),
    _plain("TheHolderLearns", Kind.EVENTUALLY, "whoever believes that it holds, and does not, comes to know it",
           the_holder_learns),
    _plain("Recovers", Kind.RECOVERABLE, "from every state some run leads to where nobody waits", recovers),
    _plain("RecoversByExpiry", Kind.RECOVERABLE, "the same from every state in which a session may yet expire",
           recovers_by_expiry),
)  # fmt: skip
RECIPE_PROPERTIES: Mapping[str, Entry] = {entry.name: entry for entry in _ALL}
"""All properties of recipes, by name."""
DEFAULTS = ("OneHolder",)
"""What a recipe is held to unless its scenario says otherwise."""


def entry(name: object) -> Entry:
    """The property of that name. Raises UnknownPropertyError."""
    if not isinstance(name, str) or name not in RECIPE_PROPERTIES:
        raise UnknownPropertyError(name, RECIPE_PROPERTIES)
    return RECIPE_PROPERTIES[name]


def build(setup: RecipeSetup, name: object, parameter: Any = None) -> Property:
    """A property of a recipe. Raises UnknownPropertyError, and ParameterError."""
    found = entry(name)
    if bool(found.parameter) is (parameter is None):
        right = f"give {found.parameter}" if found.parameter else f"write {name} alone"
        raise ParameterError(f"{name} takes {'a' if found.parameter else 'no'} parameter", right)
    if found.needs_writes and not setup.writes:
        raise ParameterError(f"{name} speaks of writes to the resource", "write writes: 1")
    if found.needs_announcements and setup.recipe != "fair-election":
        raise ParameterError(f"{name} speaks of leaders that announce themselves", "write recipe: fair-election")
    return found.build(setup, parameter)
