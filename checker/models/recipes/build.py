"""Construction of the model of a recipe: the service, the clients, the resource, and the recorded facts.

Actions in addition to those of the service (`checker.models.service.rules`), each with (client,):

    want          the application wants to hold: it joins the election, or acquires the lock
    take again    it acquires again what it holds
    release       it releases, closes or resigns
    give up       it stops waiting
    return        its `take_leadership` returns
    write         it sends a write to the guarded resource
    reach         a write reaches the resource
    remove        an operator deletes the znode of a client that waits; with its path
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from checker.engine import Actor, Column, Model, Move, Property, Read, Rule, Send
from checker.models.recipes.client import ApplicationAction, Client, client_actor, first_client, possible_actions
from checker.models.recipes.messages import Write, WriteArrives
from checker.models.recipes.observations import LargestHerd, Leaders, Reigns, herd_actor, leaders_actor, reigns_actor
from checker.models.recipes.operator import operator_actor, removals
from checker.models.recipes.resource import Resource, mail_actor, resource_actor
from checker.models.recipes.setup import HERD, LEADERS, OPERATOR, REIGNS, RESOURCE, Facts, RecipeSetup, mail_name
from checker.models.service import client_name, service


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
        columns.append(Column(OPERATOR, setup.removals))
        actors.append(operator_actor())
        rules.append(removals(setup))
    return Model(
        name,
        (*columns, *world.columns),
        (*actors, *world.actors),
        (*rules, *world.rules),
        tuple(properties),
    )


def _facts(setup: RecipeSetup) -> tuple[list[Column], list[Actor]]:
    kept = [
        (Facts.REIGNS, Column(REIGNS, Reigns()), reigns_actor(setup)),
        (Facts.LEADERS, Column(LEADERS, Leaders()), leaders_actor()),
        (Facts.HERD, Column(HERD, LargestHerd()), herd_actor()),
    ]
    columns = [column for facts, column, _ in kept if facts in setup.facts]
    actors = [actor for facts, _, actor in kept if facts in setup.facts]
    if setup.writes:
        columns.append(Column(RESOURCE, Resource()))
        actors.append(resource_actor(setup))
    return columns, actors


def _wishes(client: int, setup: RecipeSetup) -> Rule:
    name = client_name(client)

    def may(state: Client) -> tuple[ApplicationAction, ...] | None:
        return possible_actions(setup, state) or None

    def moves(may: tuple[ApplicationAction, ...]) -> Iterator[Move]:
        for wish in may:
            yield Move(wish.value, (client,), (Send(name, wish),))

    return Rule(f"wishes of {name}", (Read(name, may),), moves)


def _reach(client: int) -> Rule:
    name = mail_name(client)

    def moves(on_its_way: tuple[Write, ...]) -> Iterator[Move]:
        if on_its_way:
            yield Move("reach", (client, on_its_way[0].token), (Send(name, WriteArrives()),))

    return Rule(f"writes of {client}", (Read(name),), moves)
