"""How a recipe is shown: a lane for each client, one for the service, one for the resource, and what travels between.

Rules of this module:

- A client's lane holds what it knows: what it is at, whether it is connected, its znode, and what it believes.
- The service's lane is the truth: the znodes with their owners, and the sessions that are over.
- A request is drawn from its sending to its arrival, an answer or a notice likewise; what a lost connection took with
  it is drawn as lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from checker.engine import Model, Move, Row
from checker.job import Drawn, Json
from checker.models.recipes import RESOURCE, ROOT, Client, RecipeSetup, Resource
from checker.models.recipes.setup import mail_name
from checker.models.service import (
    LEADER,
    Broken,
    Leader,
    Link,
    Notice,
    Reply,
    client_name,
    client_of,
    link_name,
    open_sessions,
)
from checker.scenario.service_words import told_answer, told_path, told_request
from spec.recipes.selector import Selector

SERVICE = "service"


class RecipeLens:
    """The lens of a recipe's model. See `checker.job.Lens`."""

    def __init__(self, model: Model, setup: RecipeSetup) -> None:
        self._model, self._setup = model, setup

    def _at(self, row: Row, column: str) -> Any:
        return row[self._model.index[column]]

    # -- lanes -----------------------------------------------------------------------------------------------

    def lanes(self, row: Row) -> dict[str, dict[str, Json]]:
        """Clients, the service, the resource."""
        lanes = {client_name(client): self._client(client, row) for client in self._setup.client_ids}
        lanes[SERVICE] = self._service(row)
        if self._setup.writes:
            lanes[RESOURCE] = self._resource(row)
        return lanes

    def _client(self, number: int, row: Row) -> dict[str, Json]:
        client: Client = self._at(row, client_name(number))
        if client.crashed:
            return {"state": "crashed"}
        place = self._setup.machine.place(client.recipe)
        fields: dict[str, Json] = {"state": place.phase.value}
        if place.holds:
            fields["believes"] = "it holds"
        if isinstance(client.recipe, Selector) and client.recipe.runs:
            fields["take_leadership"] = "runs"
        if place.link.value != "connected":
            fields["connection"] = place.link.value
        path = getattr(place, "path", None)
        if path is not None:
            fields["znode"] = told_path(path)
        if getattr(place, "behind", None):
            fields["watches"] = told_path(place.behind)
        if place.token is not None:
            fields["token"] = place.token
        return fields

    def _service(self, row: Row) -> dict[str, Json]:
        leader: Leader = self._at(row, LEADER)
        fields: dict[str, Json] = {
            told_path(path): f"of client {client_of(znode.ephemeral_owner)}"
            for path, znode in leader.store.nodes
            if path.startswith(ROOT) and path != ROOT
        }
        links = {client: self._at(row, link_name(client)) for client in self._setup.client_ids}
        over = [f"client {c}" for c, link in links.items() if link.session not in (0, *open_sessions(leader))]
        return {**fields, "sessions over": ", ".join(over)} if over else fields

    def _resource(self, row: Row) -> dict[str, Json]:
        resource: Resource = self._at(row, RESOURCE)
        fields: dict[str, Json] = {"greatest token": resource.token} if resource.token else {}
        if resource.stale:
            fields["accepted out of order"] = resource.stale
        return fields

    # -- words -----------------------------------------------------------------------------------------------

    def caption(self, move: Move) -> str:
        """Who does what, in a sentence."""
        words = _CAPTIONS.get(move.action)
        return words(*move.arguments) if words else " ".join([move.action, *map(str, move.arguments)])

    # -- pictures --------------------------------------------------------------------------------------------

    def drawn(self, before: Row, move: Move, after: Row) -> tuple[Drawn, ...]:
        """What arrived, what was lost, what broke, what was sent."""
        return tuple(self._events(before, move, after))

    def _events(self, before: Row, move: Move, after: Row) -> Iterator[Drawn]:
        lane = _who(move.arguments[0])
        if move.action == "remove":
            yield Drawn("note", SERVICE, f"{told_path(move.arguments[0])} is deleted")
        elif move.action == "crash":
            yield Drawn("crash", lane, "crashes")
        elif move.action in ("expire", "lapse"):
            yield Drawn("note", SERVICE, f"the session of {lane} ends")
        elif move.action == "disconnect":
            yield Drawn("cut", lane, "is disconnected", peer=SERVICE)
        elif move.action in ("reconnect", "open"):
            yield Drawn("heal", lane, "is connected", peer=SERVICE)
        for each in self._setup.client_ids:
            yield from self._mail(each, before, after)
            yield from self._traffic(each, move, before, after)

    def _mail(self, client: int, before: Row, after: Row) -> Iterator[Drawn]:
        """Writes to the resource."""
        if not self._setup.writes:
            return
        was, now = (self._at(row, mail_name(client)) for row in (before, after))
        if len(now) < len(was):
            yield Drawn("deliver", RESOURCE, f"write {was[0].token}", peer=client_name(client))
        if len(now) > len(was):
            yield Drawn("send", client_name(client), f"write {now[-1].token}", peer=RESOURCE)

    def _traffic(self, client: int, move: Move, before: Row, after: Row) -> Iterator[Drawn]:
        """Requests, answers and notices of one connection."""
        lane = client_name(client)
        was: Link = self._at(before, link_name(client))
        now: Link = self._at(after, link_name(client))
        mine = move.arguments[0] == client
        if mine and move.action == "arrive":
            yield Drawn("deliver", SERVICE, told_request(was.up[0]), peer=lane)
        if mine and move.action == "arrive late":
            yield Drawn("deliver", SERVICE, told_request(was.stray[0]), peer=lane)
        if mine and move.action == "deliver" and not isinstance(was.down[0], Broken):
            yield Drawn("deliver", lane, told_answer(was.down[0]), peer=SERVICE)
        if now.state is not was.state:
            lost = was.down[1:] if mine and move.action == "deliver" else was.down
            for message in lost:
                if not isinstance(message, Broken):
                    yield Drawn("lost", SERVICE, told_answer(message), peer=lane)
        for message in _added(was, now):
            if isinstance(message, Reply | Notice):
                yield Drawn("send", SERVICE, told_answer(message), peer=lane)
        if len(now.up) > len(was.up) - (mine and move.action == "arrive"):
            yield Drawn("send", lane, told_request(now.up[-1]), peer=SERVICE)


def _added(was: Link, now: Link) -> tuple[Any, ...]:
    """What was put on its way to the client; at most one message has left before it."""
    for gone in (0, 1):
        kept = was.down[gone:]
        if now.down[: len(kept)] == kept:
            return now.down[len(kept) :]
    return ()


def _who(client: Any) -> str:
    return client_name(client)


_CAPTIONS: dict[str, Any] = {
    "want": lambda c: f"{_who(c)} wants to hold",
    "take again": lambda c: f"{_who(c)} takes it once more",
    "release": lambda c: f"{_who(c)} releases",
    "give up": lambda c: f"{_who(c)} waits no longer",
    "return": lambda c: f"take_leadership of {_who(c)} returns",
    "write": lambda c: f"{_who(c)} writes to the resource",
    "reach": lambda c, token: f"a write of {_who(c)} reaches the resource, with token {token}",
    "arrive": lambda c, _server, record: f"the service gets {told_request(record)} of {_who(c)}",
    "arrive late": lambda c, record: f"{told_request(record)} of {_who(c)}'s lost connection still arrives",
    "apply": lambda server, _first: f"server {server} applies a transaction",
    "deliver": lambda c, _server, message: f"{_who(c)} hears {told_answer(message)}",
    "disconnect": lambda c, _server: f"{_who(c)} loses its connection",
    "reconnect": lambda c, server: f"{_who(c)} reconnects to server {server}",
    "open": lambda c, server: f"{_who(c)} opens a new session at server {server}",
    "expire": lambda c: f"the session of {_who(c)} expires",
    "lapse": lambda c: f"the session of {_who(c)}, which is gone, ends",
    "crash": lambda c: f"{_who(c)} crashes",
    "remove": lambda path: f"an operator deletes {told_path(path)}",
}
