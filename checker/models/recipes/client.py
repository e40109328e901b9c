"""A client: its recipe's state, and the remaining wishes of its application.

The recipe decides by `spec.recipes`; this module carries its effects to the link, to the resource and to the recorded
facts. Rules of this module:

- At most one request is outstanding. Its reply is lost with the connection: the recipe then gets `Suspended` and, in
  the same step, `Unanswered`.
- Every id that a client passes to its recipe is derived from its number, so a znode with that id is its own.
- All crashed clients have the same value, whatever their earlier state.
"""

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec.structs import replace

from checker.engine import Actor, ModelError, Outcome, Send
from checker.kit.actions import Action, Traits
from checker.models.recipes.resource import FollowReport, HoldReport, SendWrite
from checker.models.recipes.setup import LEADERS, Facts, RecipeSetup, mail_name
from checker.models.service import (
    ClientCrash,
    ConnectionLoss,
    ConnectionStart,
    Delivery,
    Reply,
    SendRequest,
    SessionExpiry,
    WatchNotification,
    client_name,
    link_name,
)
from spec.effects import Fact, Observe
from spec.recipes import events


class RecipeAction(Action):
    """The actions of applications, of their resource and of an operator, in addition to those of the service."""

    WANT = "want", Traits(fair=False, noted=True)  # it joins the election, or acquires the lock
    AGAIN = "take again", Traits(fair=False, caption="{} takes it once more", noted=True)
    RELEASE = "release", Traits(noted=True)  # it releases, closes or resigns: nobody holds for ever
    QUIT = "give up", Traits(fair=False, caption="{} waits no longer", noted=True)
    RETURN = "return", Traits(caption="take_leadership of {} returns", noted=True)
    WRITE = "write", Traits(fair=False, caption="{} writes", noted=True)
    REACH = "reach"  # a write reaches the guarded resource
    REMOVE = "remove", Traits(fair=False, fault=True, budget="removals", noted=True)  # an operator deletes a znode


WISHES = tuple(action for action in RecipeAction if action not in (RecipeAction.REACH, RecipeAction.REMOVE))
"""The actions of applications."""


class Client(msgspec.Struct, frozen=True):
    """A client. `rounds`, `again`, `quits` and `writes` are its remaining budgets.

    `taken`: the number of times that the application has taken what it holds, minus its releases. `given_up`: a release
    has ended the holding while `taken` was above 0. `asked`: a reply is outstanding.
    """

    recipe: Any
    rounds: int = 0
    again: int = 0
    quits: int = 0
    writes: int = 0
    taken: int = 0
    given_up: bool = False
    asked: bool = False
    crashed: bool = False


def first_client(setup: RecipeSetup) -> Client:
    """A client before its first wish."""
    return Client(setup.machine.initial, setup.rounds, setup.again, setup.quits, setup.writes)


def crashed() -> Client:
    """A client that has crashed."""
    return Client(None, crashed=True)


def possible_actions(setup: RecipeSetup, client: Client) -> tuple[RecipeAction, ...]:
    """The wishes that the application may act on now."""
    if client.crashed:
        return ()
    recipe, state = setup.machine, client.recipe
    active, acts = recipe.active(state), recipe.acts(state)
    able = {
        RecipeAction.WANT: client.rounds > 0 and recipe.idle(state),
        RecipeAction.AGAIN: client.again > 0 and active,
        RecipeAction.RELEASE: client.taken > 0 and active and not recipe.calls,
        RecipeAction.QUIT: client.quits > 0 and recipe.waits(state),
        RecipeAction.RETURN: acts and recipe.calls,
        RecipeAction.WRITE: client.writes > 0 and acts,
    }
    return tuple(wish for wish, may in able.items() if may)


def client_actor(number: int, setup: RecipeSetup) -> Actor:
    """The actor of the client with that number."""
    name, id = client_name(number), f"c{number}"

    def step(values: tuple[Any, ...], said: Any) -> Outcome | None:
        client: Client = values[0]
        match said:
            case ClientCrash():
                return Outcome((crashed(),))
            case Delivery(Reply(_, code, reply)):
                return _run(replace(client, asked=False), [events.Answered(code, reply)])
            case Delivery(WatchNotification(type_, path)):
                return _run(client, [events.Notified(type_, path)])
            case ConnectionLoss():
                lost = [events.Unanswered()] if client.asked else []
                return _run(replace(client, asked=False), [events.Suspended(), *lost])
            case SessionExpiry():
                return _run(client, [events.Expired()])
            case ConnectionStart(resumed):
                return _run(client, [events.Connected(resumed, id)])
            case RecipeAction():
                return _wish(client, said)
        raise ModelError(f"{name} does not know the operation {said!r}")

    def _wish(client: Client, wish: RecipeAction) -> Outcome:
        match wish:
            case RecipeAction.WANT:
                return _run(replace(client, rounds=client.rounds - 1, taken=1), [events.Join(id)])
            case RecipeAction.AGAIN:
                return _run(replace(client, again=client.again - 1, taken=client.taken + 1), [events.Join(id)])
            case RecipeAction.RELEASE:
                return _run(replace(client, taken=client.taken - 1), [events.Leave()])
            case RecipeAction.QUIT:
                # A client in doubt may have taken it several times; it gives up all of them.
                given_up = [events.Leave()] * max(client.taken, 1)
                return _run(replace(client, quits=client.quits - 1, taken=0), given_up)
            case RecipeAction.RETURN:
                return _run(client, [events.Returned()])
            case RecipeAction.WRITE:
                machine, state = setup.exclusive, client.recipe
                post = Send(mail_name(number), SendWrite(machine.token(state) or 0, machine.path(setup.rules, state)))
                return Outcome((replace(client, writes=client.writes - 1),), (post,))
        raise ModelError(f"{name} has no wish {wish!r}")

    def _run(client: Client, heard: Iterable[events.Event]) -> Outcome:
        sends: list[Send] = []
        for event in heard:
            transition = setup.machine.step(setup.rules, client.recipe, event)
            client = replace(client, recipe=transition.state)
            for effect in transition.effects:
                match effect:
                    case Observe(events.HoldsNoMore()) if client.taken and isinstance(event, events.Leave):
                        client = replace(client, given_up=True)
                    case Observe(events.Withdrawn()):
                        client = replace(client, taken=0)
                    case events.Ask(record):
                        if client.asked:
                            raise ModelError(f"{name} asks for {record!r} while another request is outstanding")
                        client = replace(client, asked=True)
                        sends.append(Send(link_name(number), SendRequest(record)))
                if isinstance(effect, Observe):
                    sends.extend(_observed(effect.fact))
        return Outcome((client,), tuple(sends))

    def _observed(fact: Fact) -> Iterable[Send]:
        match fact:
            case events.Failed(code):
                raise ModelError(f"{name} fails with {code.name}, which no run of this recipe may reach")
            case events.Holds(path) | events.First(path) if Facts.LEADERS in setup.facts:
                yield Send(LEADERS, HoldReport(path))
            case events.Follows(leader) if Facts.LEADERS in setup.facts:
                yield Send(LEADERS, FollowReport(leader))

    return Actor(name, (name,), step)
