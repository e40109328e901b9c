"""Construction of the model of a recipe: the service, the clients, the resource, and the recorded facts."""

from collections.abc import Iterable, Iterator

from checker.engine import Actor, Column, Model, Move, Property, Read, Rule, Send
from checker.kit.actions import fair_among, has_left, spend
from checker.models.recipes.client import WISHES, Client, RecipeAction, client_actor, first_client, possible_actions
from checker.models.recipes.resource import (
    LargestHerd,
    Leaders,
    Reigns,
    Resource,
    Write,
    WriteArrives,
    herd_actor,
    leaders_actor,
    mail_actor,
    reigns_actor,
    resource_actor,
)
from checker.models.recipes.setup import HERD, LEADERS, REIGNS, RESOURCE, ROOT, Facts, RecipeSetup, first_of, mail_name
from checker.models.service import LEADER, Leader, client_name, service
from checker.models.service.messages import Propose
from spec.tree.requests import Delete, SessionId


def recipe_model(name: str, setup: RecipeSetup, properties: Iterable[Property] = ()) -> Model:
    """The model of some clients with one recipe."""
    world = service(setup.service)
    columns, actors = _facts(setup)
    rules: list[Rule] = []
    for client in setup.client_ids:
        columns.append(Column(client_name(client), first_client(setup)))
        actors.append(client_actor(client, setup))
        rules.append(_wishes(client, setup))
        if setup.writes:
            columns.append(Column(mail_name(client), ()))
            actors.append(mail_actor(client))
            rules.append(_reach(client))
    if setup.removals:
        rules.append(removals(setup))
    return Model(name, (*columns, *world.columns), (*actors, *world.actors), (*rules, *world.rules), tuple(properties))


def _facts(setup: RecipeSetup) -> tuple[list[Column], list[Actor]]:
    parts = [
        (Facts.REIGNS, Column(REIGNS, Reigns()), reigns_actor(setup)),
        (Facts.LEADERS, Column(LEADERS, Leaders()), leaders_actor()),
        (Facts.HERD, Column(HERD, LargestHerd()), herd_actor()),
    ]
    columns = [column for facts, column, _ in parts if facts in setup.facts]
    actors = [actor for facts, _, actor in parts if facts in setup.facts]
    if setup.writes:
        columns.append(Column(RESOURCE, Resource()))
        actors.append(resource_actor(setup))
    return columns, actors


def _wishes(client: int, setup: RecipeSetup) -> Rule:
    name = client_name(client)

    def may(state: Client) -> tuple[RecipeAction, ...] | None:
        return possible_actions(setup, state) or None

    def moves(may: tuple[RecipeAction, ...]) -> Iterator[Move]:
        for wish in may:
            yield Move(wish, (client,), (Send(name, wish),))

    return Rule(f"wishes of {name}", (Read(name, may),), moves, WISHES, fair_among(WISHES))


def _reach(client: int) -> Rule:
    name = mail_name(client)

    def moves(on_its_way: tuple[Write, ...]) -> Iterator[Move]:
        if on_its_way:
            yield Move(RecipeAction.REACH, (client, on_its_way[0].token), (Send(name, WriteArrives()),))

    return Rule(f"writes of {client}", (Read(name),), moves, (RecipeAction.REACH,), fair=True)


def removals(setup: RecipeSetup) -> Rule:
    """The rule that deletes the znode of a waiting client, with a request in that client's session.

    The requester makes no difference to the outcome.
    """

    def there(leader: Leader) -> tuple[tuple[str, SessionId], ...] | None:
        first = first_of(setup, leader.store)
        waiting = [(path, znode) for path, znode in leader.store.nodes if path.startswith(f"{ROOT}/")]
        return tuple((path, znode.ephemeral_owner) for path, znode in waiting if first and path != first[0]) or None

    def moves(there: tuple[tuple[str, SessionId], ...], _left: bool) -> Iterator[Move]:
        for path, owner in there:
            request = Propose(owner, Delete(path, -1))
            yield Move(RecipeAction.REMOVE, (path,), (spend(RecipeAction.REMOVE), Send(LEADER, request)))

    reads = (Read(LEADER, there), has_left(RecipeAction.REMOVE))
    return Rule("the operator deletes", reads, moves, (RecipeAction.REMOVE,))
