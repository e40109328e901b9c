"""The safety of recipes: one holder, accepted writes, notified clients, and a barrier that nobody passes alone.

Rules of this module: the belief of a client is the state of its recipe; the truth is the first znode in the leader's
tree, recorded as `reigns` for the properties that read it. Writes are judged by the truth and not by tokens. A client
that has crashed is False, for every projection.

Sources: R15 to R22; fencing as in Chubby's sequencers (Burrows 2006, 2.4); ZooKeeper's recipes, "Double Barriers".
"""

from collections.abc import Callable, Hashable, Iterable
from typing import Any

from checker.engine import TRIVIAL, Finding, Kind, Read
from checker.models.recipes import (
    HERD,
    LEADERS,
    REIGNS,
    RESOURCE,
    ROOT,
    Client,
    Facts,
    LargestHerd,
    Leaders,
    RecipeSetup,
    Reigns,
    Resource,
    first_of,
)
from checker.models.service import LEADER, Leader, client_name, watches_name
from checker.properties.registry import Answer, Condition, Parameter, ParameterError, Registry, Scope
from spec.recipes.barrier import READY, BarrierPhase
from spec.recipes.recipes import DoubleBarrier, ExclusiveRecipe
from spec.tree.paths import below

RECIPE_PROPERTIES: Registry[RecipeSetup, Facts] = Registry("recipes")
"""All properties of recipes, by name."""

EXCLUSIVE: Scope[RecipeSetup] = Scope(
    lambda setup: isinstance(setup.machine, ExclusiveRecipe),
    "to recipes with one holder",
    "speaks of a holder",
    "write recipe: lock, or an election",
)
WRITES: Scope[RecipeSetup] = Scope(
    lambda setup: setup.writes > 0, "with `writes`", "speaks of writes to the resource", "write writes: 1"
)
ANNOUNCED: Scope[RecipeSetup] = Scope(
    lambda setup: isinstance(setup.machine, ExclusiveRecipe) and setup.machine.announces,
    "with `recipe: fair-election`",
    "speaks of leaders that announce themselves",
    "write recipe: fair-election",
)


def clients(setup: RecipeSetup, see: Callable[[Client], Hashable]) -> tuple[Read, ...]:
    """A read of each client; a client that has crashed is False."""
    return tuple(
        Read(client_name(client), lambda state: False if state.crashed else see(state)) for client in setup.client_ids
    )


def holders(setup: RecipeSetup) -> tuple[Read, ...]:
    """Whether each client believes that it holds."""
    return clients(setup, lambda client: setup.exclusive.holds(client.recipe))


def waiters(setup: RecipeSetup) -> tuple[Read, ...]:
    """Whether each client wants to hold and does not."""
    return clients(setup, lambda client: setup.machine.waits(client.recipe))


def tokens_of_holders(setup: RecipeSetup) -> tuple[Read, ...]:
    """The token by which each client believes that it holds; False if it does not."""
    recipe = setup.exclusive

    def token(client: Client) -> Hashable:
        return recipe.token(client.recipe) if recipe.holds(client.recipe) else False

    return clients(setup, token)


def first_token(setup: RecipeSetup) -> Read:
    """The czxid of the first znode in the leader's tree; 0 if there is none."""

    def first(leader: Leader) -> Hashable:
        value = first_of(setup, leader.store)
        return 0 if value is None else value[1].czxid

    return Read(LEADER, first)


def those(seen: Iterable[object]) -> tuple[int, ...]:
    """The numbers of the clients with a true value."""
    return tuple(client for client, true in enumerate(seen, 1) if true)


@RECIPE_PROPERTIES.declare(
    "OneHolder",
    Kind.ALWAYS,
    meaning="No two clients believe at the same time that they hold",
    premise="Some client believes that it holds",
    requirements=("R15", "R16", "R18", "R21", "R22"),
    default=EXCLUSIVE,
    needs=EXCLUSIVE,
)
def _one_holder(setup: RecipeSetup) -> Condition:
    def check(*holds: bool) -> Answer:
        holders = those(holds)
        if len(holders) > 1:
            return Finding("two clients believe at once that they hold", (("clients", holders),))
        return None if holders else TRIVIAL

    return Condition(holders(setup), check)


@RECIPE_PROPERTIES.declare(
    "HoldsByRight",
    Kind.ALWAYS,
    meaning="The znode of a client that believes that it holds is, or once was, the first one",
    premise="Some client believes that it holds",
    requirements=("R16", "R18"),
    facts=(Facts.REIGNS,),
    needs=EXCLUSIVE,
)
def _holds_by_right(setup: RecipeSetup) -> Condition:
    def check(reigns: Reigns, *tokens: Any) -> Answer:
        holders = {client: token for client, token in enumerate(tokens, 1) if token is not False}
        wrong = tuple(client for client, token in holders.items() if token not in reigns.past)
        if wrong:
            return Finding("a client believes that it holds, and its znode was never first", (("clients", wrong),))
        return None if holders else TRIVIAL

    return Condition((Read(REIGNS), *tokens_of_holders(setup)), check)


@RECIPE_PROPERTIES.declare(
    "FencedInOrder",
    Kind.ALWAYS,
    meaning="The guarded resource accepts no write of an earlier reign after one of a later reign",
    premise="The resource has accepted a write",
    requirements=("R20",),
    needs=WRITES,
    facts=(Facts.REIGNS,),
)
def _fenced_in_order(_: RecipeSetup) -> Condition:
    def check(resource: Resource) -> Answer:
        if resource.stale:
            clause = "a write of an earlier reign was accepted after one of a later"
            return Finding(clause, (("writes accepted out of order", resource.stale),))
        return None if resource.reign >= 0 else TRIVIAL

    return Condition((Read(RESOURCE),), check)


@RECIPE_PROPERTIES.declare(
    "RightfulIsAccepted",
    Kind.ALWAYS,
    meaning="The guarded resource rejects no write of a client whose znode is first",
    premise="The resource has accepted a write",
    requirements=("R20",),
    needs=WRITES,
    facts=(Facts.REIGNS,),
)
def _rightful_is_accepted(_: RecipeSetup) -> Condition:
    def check(resource: Resource) -> Answer:
        if resource.rejected:
            return Finding("a write was rejected while its znode was first", (("rejected", resource.rejected),))
        return None if resource.reign >= 0 else TRIVIAL

    return Condition((Read(RESOURCE),), check)


@RECIPE_PROPERTIES.declare(
    "OneIsTold",
    Kind.ALWAYS,
    meaning="No event fires watches of more than one client at the same server",
    premise="Some event has fired a watch",
    requirements=("R16", "R17"),
    notes="Clients at different servers that one event notifies are not added up, so the property is exact with one "
    "server.",
    facts=(Facts.HERD,),
)
def _one_is_told(_: RecipeSetup) -> Condition:
    def check(told: LargestHerd) -> Answer:
        if told.clients > 1:
            return Finding("one event has notified several clients", (("path", told.path), ("clients", told.clients)))
        return None if told.clients else TRIVIAL

    return Condition((Read(HERD),), check)


@RECIPE_PROPERTIES.declare(
    "NoWatchLeft",
    Kind.ALWAYS,
    meaning="No server keeps a watch on a path below the recipe's root that is not in the leader's tree",
    premise="A server keeps a watch below the recipe's root",
    requirements=("R16",),
)
def _no_watch_left(setup: RecipeSetup) -> Condition:
    def paths(watches: Iterable[Any]) -> Hashable:
        return frozenset(path for _, _, path in watches if path.startswith(f"{ROOT}/"))

    def tree(leader: Leader) -> Hashable:
        return frozenset(path for path, _ in leader.store.nodes)

    def check(there: frozenset[str], *watched: frozenset[str]) -> Answer:
        remaining = sorted({path for paths in watched for path in paths if path not in there})
        if remaining:
            return Finding("a watch is left where no znode is", (("paths", tuple(remaining)),))
        return None if any(watched) else TRIVIAL

    reads = (Read(watches_name(server), paths) for server in setup.service.server_ids)
    return Condition((Read(LEADER, tree), *reads), check)


@RECIPE_PROPERTIES.declare(
    "FollowsALeader",
    Kind.ALWAYS,
    meaning="A client that another one follows as the leader has reported that it leads",
    premise="Some client has reported that it leads",
    requirements=("R16",),
    needs=ANNOUNCED,
    facts=(Facts.LEADERS,),
)
def _follows_a_leader(_: RecipeSetup) -> Condition:
    def check(leaders: Leaders) -> Answer:
        if leaders.mistaken is not None:
            clause = "a client is taken for the leader, and has never come to know that it leads"
            return Finding(clause, (("znode", leaders.mistaken),))
        return None if leaders.led else TRIVIAL

    return Condition((Read(LEADERS),), check)


@RECIPE_PROPERTIES.declare(
    "HeldUntilReleased",
    Kind.ALWAYS,
    meaning="A lock that is not lost is held until it has been released as often as it was taken",
    premise="Some client has taken its lock more than once",
    requirements=("R18",),
    needs=EXCLUSIVE,
)
def _held_until_released(setup: RecipeSetup) -> Condition:
    def check(*taken: Any) -> Answer:
        early = tuple(client for client, way in enumerate(taken, 1) if way == "given up")
        if early:
            return Finding("a lock was given up by a release too few", (("clients", early),))
        return None if "twice" in taken else TRIVIAL

    def see(client: Client) -> Hashable:
        if client.given_up:
            return "given up"
        return "twice" if client.taken > 1 else "once or not"

    return Condition(clients(setup, see), check)


@RECIPE_PROPERTIES.declare(
    "Held", Kind.SOMETIMES, meaning="In some state a client believes that it holds", needs=EXCLUSIVE
)
def _somebody_holds_once(setup: RecipeSetup) -> Condition:
    def check(*holds: bool) -> Answer:
        return Finding("a client holds", (("client", those(holds)[0]),)) if any(holds) else None

    return Condition(holders(setup), check)


@RECIPE_PROPERTIES.declare(
    "TwoHold",
    Kind.SOMETIMES,
    meaning="In some state two clients believe that they hold",
    requirements=("R20",),
    notes="It shows the window of an expired session: one of the clients does not know yet that its session has ended.",
    needs=EXCLUSIVE,
)
def _two_hold(setup: RecipeSetup) -> Condition:
    def check(*holds: bool) -> Answer:
        holders = those(holds)
        return Finding("two clients believe that they hold", (("clients", holders),)) if len(holders) > 1 else None

    return Condition(holders(setup), check)


def _read_count(setup: RecipeSetup, value: object) -> tuple[int, str]:
    most = setup.writes * setup.clients
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise ParameterError(f"{value!r} is not a number of writes here", f"write 1 to {most}")
    return value, str(value)


COUNT: Parameter[RecipeSetup] = Parameter("a number of writes", "2", _read_count)


@RECIPE_PROPERTIES.declare(
    "StaleWrites",
    Kind.SOMETIMES,
    meaning="In some run the resource accepts at least the given number of writes of earlier reigns after one of a "
    "later reign",
    requirements=("R20",),
    parameter=COUNT,
    needs=WRITES,
    facts=(Facts.REIGNS,),
)
def _stale_writes(_: RecipeSetup, count: int) -> Condition:
    def check(resource: Resource) -> Answer:
        if resource.stale >= count:
            return Finding(f"{count} writes out of order were accepted")
        return None

    return Condition((Read(RESOURCE),), check)


# -- the double barrier --------------------------------------------------------------------------------------

BARRIER: Scope[RecipeSetup] = Scope(
    lambda setup: isinstance(setup.machine, DoubleBarrier),
    "with `recipe: double-barrier`",
    "speaks of a barrier",
    "write recipe: double-barrier",
)


def _phases(setup: RecipeSetup) -> tuple[Read, ...]:
    """The phase of each client, INSIDE only with a connection; False for a crashed client."""

    def see(client: Client) -> Hashable:
        phase = client.recipe.phase
        return None if phase is BarrierPhase.INSIDE and not client.recipe.inside else phase

    return clients(setup, see)


def _of_phase(phases: Iterable[object], *wanted: BarrierPhase) -> tuple[int, ...]:
    return tuple(client for client, phase in enumerate(phases, 1) if phase in wanted)


@RECIPE_PROPERTIES.declare(
    "NobodyInsideAlone",
    Kind.ALWAYS,
    meaning="No client is inside a barrier before all clients have registered",
    premise="Some client is inside",
    notes="All znodes that were ever created below the root count, so a client that has crashed has registered, too.",
    default=BARRIER,
    needs=BARRIER,
)
def _nobody_inside_alone(setup: RecipeSetup) -> Condition:
    def registered(leader: Leader) -> int:
        root = leader.store.node(ROOT)
        created = 0 if root is None else root.cversion
        return created - (leader.store.node(below(ROOT, READY)) is not None)

    def check(registered: int, *phases: Any) -> Answer:
        inside = _of_phase(phases, BarrierPhase.INSIDE)
        if inside and registered < setup.clients:
            return Finding("a client is inside, and not all have registered", (("clients", inside),))
        return None if inside else TRIVIAL

    return Condition((Read(LEADER, registered), *_phases(setup)), check)


@RECIPE_PROPERTIES.declare(
    "NobodyOutAlone",
    Kind.ALWAYS,
    meaning="No client has left a barrier while another one is inside",
    premise="Some client has left",
    default=BARRIER,
    needs=BARRIER,
)
def _nobody_out_alone(setup: RecipeSetup) -> Condition:
    def check(*phases: Any) -> Answer:
        left, inside = _of_phase(phases, BarrierPhase.LEFT), _of_phase(phases, BarrierPhase.INSIDE)
        if left and inside:
            return Finding("a client has left while another one is inside", (("left", left), ("inside", inside)))
        return None if left else TRIVIAL

    return Condition(_phases(setup), check)


@RECIPE_PROPERTIES.declare(
    "NobodyIsStuck",
    Kind.FINAL,
    meaning="In every state without a next step, no client waits to leave a barrier, and none waits in front of one "
    "that is open or full",
    notes="In front of a barrier that is not full a client may wait for ever: another one may never come.",
    needs=BARRIER,
)
def _nobody_is_stuck(setup: RecipeSetup) -> Condition:
    leaving = (BarrierPhase.LISTING, BarrierPhase.DELETING, BarrierPhase.WATCHING, BarrierPhase.AWAITING)
    settled = (BarrierPhase.OUT, BarrierPhase.INSIDE, BarrierPhase.LEFT)

    def passable(leader: Leader) -> bool:
        names = leader.store.children(ROOT)
        return READY in names or len(names) >= setup.clients

    def check(passable: bool, *phases: Any) -> Answer:
        entering = tuple(phase for phase in BarrierPhase if phase not in leaving and phase not in settled)
        stuck = _of_phase(phases, *leaving, *(entering if passable else ()))
        return Finding("clients wait, and nothing more can happen", (("clients", stuck),)) if stuck else None

    return Condition((Read(LEADER, passable), *_phases(setup)), check)


@RECIPE_PROPERTIES.declare(
    "AllInside",
    Kind.SOMETIMES,
    meaning="In some state all clients are inside a barrier at the same time",
    needs=BARRIER,
)
def _all_inside(setup: RecipeSetup) -> Condition:
    return Condition(_phases(setup), lambda *phases: _everyone(phases, BarrierPhase.INSIDE))


@RECIPE_PROPERTIES.declare(
    "AllLeft", Kind.SOMETIMES, meaning="In some state all clients have left a barrier", needs=BARRIER
)
def _all_left(setup: RecipeSetup) -> Condition:
    return Condition(_phases(setup), lambda *phases: _everyone(phases, BarrierPhase.LEFT))


def _everyone(phases: tuple[object, ...], wanted: BarrierPhase) -> Answer:
    return Finding(f"all clients are {wanted.value}") if all(phase is wanted for phase in phases) else None
