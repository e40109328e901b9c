"""The display of a recipe: a lane for each client, one for the service, one for the resource, and the messages.

Rules of this module:

- A client's lane shows the client's knowledge: its phase, its connection, its znode. A note marks the step in which it
  begins or ceases to believe that it holds or leads, since that is what a recipe is about.
- The service's lane shows the truth: the znodes with their owners, the watches with their clients, the sessions that
  are over, and the transactions that lagging servers have not applied.
- A request is drawn from its sending to its arrival, and so are replies and notifications. A message that was in flight
  on a lost connection is drawn as lost.
- A note that repeats the caption has the caption's words: a table then omits it, and a picture needs it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from checker.engine import Model, Move, Row
from checker.job import DiagramEvent, Json
from checker.models.recipes import RESOURCE, ROOT, Client, RecipeSetup, Resource
from checker.models.recipes.setup import mail_name
from checker.models.service import (
    LEADER,
    ClientConnection,
    Commit,
    ConnectionClosed,
    LaggingServer,
    Leader,
    Reply,
    WatchNotification,
    client_name,
    client_of,
    link_name,
    open_sessions,
    server_name,
    watches_name,
)
from checker.present.recipe_wording import told_answer, told_commit, told_path, told_request, told_shortly
from spec.recipes.selector import Selector
from spec.tree.data import Record
from spec.tree.store import FrozenStore

SERVICE = "service"
DRAWN_OTHERWISE = frozenset({"arrive", "arrive late", "deliver", "reach", "crash"})
"""Actions with an arrow or a mark in a picture; for every other action a picture shows the caption."""
OF_THE_SERVICE = frozenset({"remove", "expire", "lapse", "apply"})
BETWEEN = frozenset({"disconnect", "reconnect", "open"})
"""The actions whose captions are over the service, or over client and service; others are over the client."""


class RecipePresenter:
    """The presenter of a recipe's model. See `checker.job.Presenter`."""

    def __init__(self, model: Model, setup: RecipeSetup) -> None:
        self._model, self._setup = model, setup
        self._word = "hold" if setup.recipe == "lock" else "lead"
        self._captions = _Captions(self._word, alone=setup.servers == 1)

    def _at(self, row: Row, column: str) -> Any:
        return row[self._model.index[column]]

    # -- lanes -----------------------------------------------------------------------------------------------

    def lanes(self, row: Row) -> dict[str, dict[str, Json]]:
        """The clients, the service and the resource."""
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
        fields: dict[str, Json] = {"state": self._state(place)}
        if isinstance(client.recipe, Selector) and client.recipe.runs:
            fields["take_leadership"] = "runs"
        fields["connection"] = "up" if place.link.value == "connected" else place.link.value
        path = getattr(place, "path", None)
        if path is not None:
            fields["znode"] = told_path(path)
        if place.token is not None:
            fields["token"] = place.token
        return fields

    def _state(self, place: Any) -> str:
        """The phase of a client, and its belief if that differs."""
        at = str(place.phase.value)
        if (at == "holding") is place.holds:
            return f"{self._word}ing" if place.holds else at
        return f"{at}, yet {self._word}ing" if place.holds else "in doubt"

    def _service(self, row: Row) -> dict[str, Json]:
        leader: Leader = self._at(row, LEADER)
        fields: dict[str, Json] = {
            told_path(path): client_name(client_of(znode.ephemeral_owner)) for path, znode in _znodes(leader.store)
        }
        watchers = defaultdict(list)
        for server in self._setup.service.server_ids:
            for client, _, path in self._at(row, watches_name(server)):
                watchers[path].append(client_name(client))
        fields |= {f"watch {told_path(path)}": ", ".join(sorted(who)) for path, who in sorted(watchers.items())}
        links = {client: self._at(row, link_name(client)) for client in self._setup.client_ids}
        over = [client_name(c) for c, link in links.items() if link.session not in (0, *open_sessions(leader))]
        if over:
            fields["sessions over"] = ", ".join(over)
        if self._setup.lag:
            for server in self._setup.service.server_ids:
                replica: LaggingServer = self._at(row, server_name(server))
                lags = any(isinstance(each, Commit) for each in replica.pending)
                fields[server_name(server)] = _behind(replica.store, leader.store) if lags else "up to date"
        return fields

    def _resource(self, row: Row) -> dict[str, Json]:
        resource: Resource = self._at(row, RESOURCE)
        fields: dict[str, Json] = {"greatest token": resource.token} if resource.token else {}
        if resource.stale:
            fields["accepted out of order"] = resource.stale
        if resource.rejected:
            fields["refused by mistake"] = resource.rejected
        return fields

    # -- words -----------------------------------------------------------------------------------------------

    def caption(self, move: Move) -> str:
        """One sentence with the actor and the action."""
        return self._captions.of(move)

    # -- pictures --------------------------------------------------------------------------------------------

    def diagram(self, before: Row, move: Move, after: Row) -> tuple[DiagramEvent, ...]:
        """The arrivals, losses, broken connections and sent messages of a step."""
        return tuple(self._events(before, move, after))

    def _events(self, before: Row, move: Move, after: Row) -> Iterator[DiagramEvent]:
        who = move.arguments[0]
        if move.action == "crash":
            yield DiagramEvent("crash", client_name(who), "crash")
        elif move.action not in DRAWN_OTHERWISE:
            lane = SERVICE if move.action in OF_THE_SERVICE else client_name(who)
            yield DiagramEvent("note", lane, self.caption(move), peer=SERVICE if move.action in BETWEEN else None)
        for each in self._setup.client_ids:
            yield from self._mail(each, before, after)
            yield from self._traffic(each, move, before, after)
            yield from self._beliefs(each, before, after)

    def _beliefs(self, client: int, before: Row, after: Row) -> Iterator[DiagramEvent]:
        """A note if the client begins or ceases to believe that it holds."""
        holds = self._setup.machine.holds
        states = [self._at(row, client_name(client)) for row in (before, after)]
        was, now = (not state.crashed and holds(state.recipe) for state in states)
        if was is not now and not states[1].crashed:
            yield DiagramEvent("note", client_name(client), f"*{self._word}s{'' if now else ' no more'}*")

    def _mail(self, client: int, before: Row, after: Row) -> Iterator[DiagramEvent]:
        """Writes to the resource."""
        if not self._setup.writes:
            return
        was, now = (self._at(row, mail_name(client)) for row in (before, after))
        if len(now) < len(was):
            yield DiagramEvent("deliver", RESOURCE, f"write, token {was[0].token}", peer=client_name(client))
            old, new = (self._at(row, RESOURCE) for row in (before, after))
            refused = was[0].token < old.token and new.stale == old.stale
            yield DiagramEvent("note", RESOURCE, "*refuses it*" if refused else "accepts it")
        if len(now) > len(was):
            yield DiagramEvent("send", client_name(client), f"write, token {now[-1].token}", peer=RESOURCE)

    def _traffic(self, client: int, move: Move, before: Row, after: Row) -> Iterator[DiagramEvent]:
        """The requests, replies and notifications of one connection."""
        lane = client_name(client)
        was: ClientConnection = self._at(before, link_name(client))
        now: ClientConnection = self._at(after, link_name(client))
        mine = move.arguments[0] == client
        if mine and move.action == "arrive":
            yield DiagramEvent("deliver", SERVICE, told_request(was.up[0]), peer=lane)
        if mine and move.action == "arrive late":
            yield DiagramEvent("deliver", SERVICE, told_request(was.stray[0]), peer=lane)
        if mine and move.action == "deliver" and not isinstance(was.down[0], ConnectionClosed):
            yield DiagramEvent("deliver", lane, told_answer(was.down[0]), peer=SERVICE)
        if now.state is not was.state:
            lost = was.down[1:] if mine and move.action == "deliver" else was.down
            for message in lost:
                if not isinstance(message, ConnectionClosed):
                    yield DiagramEvent("lost", SERVICE, told_answer(message), peer=lane)
        for request in _dropped(was, now, move if mine else None):
            yield DiagramEvent("lost", lane, told_request(request), peer=SERVICE)
        for message in _added(was, now):
            if isinstance(message, Reply | WatchNotification):
                yield DiagramEvent("send", SERVICE, told_answer(message), peer=lane)
        if len(now.up) > len(was.up) - (mine and move.action == "arrive"):
            yield DiagramEvent("send", lane, told_request(now.up[-1]), peer=SERVICE)


def _added(was: ClientConnection, now: ClientConnection) -> tuple[Any, ...]:
    """The messages that were sent to the client; at most one earlier message has left the connection."""
    for gone in (0, 1):
        kept = was.down[gone:]
        if now.down[: len(kept)] == kept:
            return now.down[len(kept) :]
    return ()


def _dropped(was: ClientConnection, now: ClientConnection, move: Move | None) -> list[Record]:
    """The requests that were lost; `move` is the step of this connection, or None if the step was another one's."""
    action = move.action if move else ""
    stray, up = list(was.stray), list(was.up)
    if action == "arrive":
        up = up[1:]
    elif action == "arrive late":
        stray = stray[1:]
    # After a reconnection the client may have sent an equal request again.
    kept = now.stray if action == "reconnect" else now.stray + now.up
    return [request for request in stray + up if request not in kept]


def _znodes(store: FrozenStore) -> list[tuple[str, Any]]:
    """The recipe's znodes, with their paths."""
    return [(path, znode) for path, znode in store.nodes if path.startswith(ROOT) and path != ROOT]


def _behind(own: FrozenStore, newest: FrozenStore) -> str:
    """The transactions that a server has not applied, as the znodes that it lacks and those that it still has."""
    old, new = ([told_path(path) for path, _ in _znodes(store)] for store in (own, newest))
    lacks, keeps = ([path for path in one if path not in other] for one, other in ((new, old), (old, new)))
    told = [f"{word} {', '.join(paths)}" for word, paths in (("lacks", lacks), ("still has", keeps)) if paths]
    return ", ".join(told) or "lags"


class _Captions:
    """A sentence for each action; `alone`: the only server is not named."""

    def __init__(self, word: str, *, alone: bool) -> None:
        self._word, self._alone = word, alone

    def of(self, move: Move) -> str:
        """One sentence with the actor and the action."""
        words = getattr(self, f"_{move.action.replace(' ', '_')}", None)
        return str(words(*move.arguments)) if words else " ".join([move.action, *map(str, move.arguments)])

    def _at(self, server: Any) -> str:
        return "" if self._alone or server is None else f" at server {server}"

    def _want(self, c: int) -> str:
        return f"{client_name(c)} wants to {self._word}"

    def _take_again(self, c: int) -> str:
        return f"{client_name(c)} takes it once more"

    def _release(self, c: int) -> str:
        return f"{client_name(c)} releases"

    def _give_up(self, c: int) -> str:
        return f"{client_name(c)} waits no longer"

    def _return(self, c: int) -> str:
        return f"take_leadership of {client_name(c)} returns"

    def _write(self, c: int) -> str:
        return f"{client_name(c)} writes"

    def _reach(self, c: int, token: int) -> str:
        return f"a write of {client_name(c)} arrives, token {token}"

    def _arrive(self, c: int, server: int | None, record: Any) -> str:
        return f"{told_request(record)} of {client_name(c)} arrives{self._at(server)}"

    def _arrive_late(self, c: int, record: Any) -> str:
        return f"{told_request(record)} of {client_name(c)} arrives late"

    def _apply(self, server: int, first: Any) -> str:
        return f"server {server} applies {told_commit(first)}"

    def _deliver(self, c: int, _server: int | None, message: Any) -> str:
        return f"{client_name(c)} hears {told_shortly(message)}"

    def _disconnect(self, c: int, _server: int | None) -> str:
        return f"{client_name(c)} loses its connection"

    def _reconnect(self, c: int, server: int) -> str:
        return f"{client_name(c)} reconnects{'' if self._alone else f' to server {server}'}"

    def _open(self, c: int, server: int) -> str:
        return f"{client_name(c)} asks for a new session{self._at(server)}"

    def _expire(self, c: int) -> str:
        return f"the session of {client_name(c)} expires"

    def _lapse(self, c: int) -> str:
        return f"the session of {client_name(c)}, which has crashed, ends"

    def _crash(self, c: int) -> str:
        return f"{client_name(c)} crashes"

    def _remove(self, path: str) -> str:
        return f"an operator deletes {told_path(path)}"
