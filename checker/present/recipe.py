"""The display of a recipe: a lane for each client, one for the service, one for the resource, and the messages.

Rules of this module:

- A client's lane shows the client's knowledge: its phase, its connection, its znode. A note marks the step in which it
  begins or ceases to believe that it holds or leads.
- The service's lane shows the truth: the znodes with their owners, the watches with their clients, the sessions that
  are over, and the transactions that lagging servers have not applied.
- A request is drawn from its sending to its arrival, and so are replies and notifications. A message that was in flight
  on a lost connection is drawn as lost.
- A note that repeats the caption has the caption's words: a table then omits it, and a picture needs it.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from checker.engine import Model, Move, Row
from checker.job import DiagramEvent, Json
from checker.kit.actions import Action
from checker.models.recipes import RESOURCE, ROOT, Client, RecipeSetup, Resource
from checker.models.recipes.client import RecipeAction
from checker.models.recipes.resource import WriteArrives
from checker.models.recipes.setup import mail_name
from checker.models.service import (
    LEADER,
    Commit,
    ConnectionClosed,
    LaggingServer,
    Leader,
    ServiceAction,
    client_name,
    client_of,
    link_name,
    open_sessions,
    server_name,
    watches_name,
)
from checker.models.service.messages import ServerMessage
from checker.present.generic import changes, operation_on
from checker.present.service import traffic
from checker.present.wording import api_commit, api_message, api_request, short_path
from spec.recipes.recipes import ExclusiveRecipe
from spec.recipes.selector import Selector
from spec.tree.store import FrozenStore

SERVICE = "service"
OF_THE_SERVICE = frozenset({RecipeAction.REMOVE, ServiceAction.EXPIRE, ServiceAction.LAPSE, ServiceAction.APPLY})
BETWEEN = frozenset({ServiceAction.DISCONNECT, ServiceAction.RECONNECT, ServiceAction.OPEN})
"""The actions whose captions are over the service, or over client and service; others are over the client."""


class RecipePresenter:
    """The presenter of a recipe's model. See `checker.job.Presenter`."""

    def __init__(self, model: Model, setup: RecipeSetup) -> None:
        self._model, self._setup = model, setup
        self._recipe = setup.machine
        self.word, self.farewell = self._recipe.verb, self._recipe.farewell

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
        member = self._recipe.member(client.recipe)
        fields: dict[str, Json] = {"state": self._state(member)}
        if isinstance(client.recipe, Selector) and client.recipe.runs:
            fields["take_leadership"] = "runs"
        fields["connection"] = "up" if member.link.value == "connected" else member.link.value
        path = getattr(member, "path", None)
        if path is not None:
            fields["znode"] = short_path(path)
        token = getattr(member, "token", None)
        if token is not None:
            fields["token"] = token
        return fields

    def _state(self, member: Any) -> str:
        """The phase of a client, and its belief if that differs."""
        phase = str(member.phase.value)
        if not isinstance(self._recipe, ExclusiveRecipe):
            return phase
        if (phase == "holding") is member.holds:
            return f"{self.word}ing" if member.holds else phase
        return f"{phase}, yet {self.word}ing" if member.holds else "in doubt"

    def _service(self, row: Row) -> dict[str, Json]:
        leader: Leader = self._at(row, LEADER)
        fields: dict[str, Json] = {
            short_path(path): client_name(client_of(znode.ephemeral_owner)) for path, znode in _znodes(leader.store)
        }
        watchers = defaultdict(list)
        for server in self._setup.service.server_ids:
            for client, _, path in self._at(row, watches_name(server)):
                watchers[path].append(client_name(client))
        fields |= {f"watch {short_path(path)}": ", ".join(sorted(who)) for path, who in sorted(watchers.items())}
        links = {client: self._at(row, link_name(client)) for client in self._setup.client_ids}
        over = [client_name(c) for c, link in links.items() if link.session not in (0, *open_sessions(leader))]
        if over:
            fields["sessions over"] = ", ".join(over)
        if self._setup.lag:
            for server in self._setup.service.server_ids:
                replica: LaggingServer = self._at(row, server_name(server))
                lags = any(isinstance(change, Commit) for change in replica.pending)
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

    # -- captions --------------------------------------------------------------------------------------------

    def caption(self, move: Move) -> str:
        """One sentence with the actor and the action."""
        if move.action in _CAPTIONS:
            return _CAPTIONS[move.action](self, *move.arguments)
        assert isinstance(move.action, Action)
        return move.action.worded(client_name(move.arguments[0]))

    def place(self, preposition: str, server: int | None) -> str:
        """The server of a request, behind a preposition; the only server is not named."""
        return "" if self._setup.servers == 1 or server is None else f"{preposition} server {server}"

    # -- diagrams --------------------------------------------------------------------------------------------

    def diagram(self, before: Row, move: Move, after: Row) -> tuple[DiagramEvent, ...]:
        """The note of a step, and the arrivals, losses and sent messages."""
        return tuple(self._events(before, move, after))

    def _events(self, before: Row, move: Move, after: Row) -> Iterator[DiagramEvent]:
        who, action = move.arguments[0], move.action
        if action == ServiceAction.CRASH:
            yield DiagramEvent("crash", client_name(who), "crash")
        elif action == ServiceAction.APPLY or (isinstance(action, Action) and action.traits.noted):
            lane = SERVICE if action in OF_THE_SERVICE else client_name(who)
            yield DiagramEvent("note", lane, self.caption(move), peer=SERVICE if action in BETWEEN else None)
        for client in self._setup.client_ids:
            yield from self._writes(client, move, before, after)
            yield from self._traffic(client, move, before, after)
            yield from self._beliefs(client, before, after)

    def _beliefs(self, client: int, before: Row, after: Row) -> Iterator[DiagramEvent]:
        """A note if the client begins or ceases to believe that it has what it joined for."""
        active = self._recipe.active
        states = [self._at(row, client_name(client)) for row in (before, after)]
        was, now = (not state.crashed and active(state.recipe) for state in states)
        if was is not now and not states[1].crashed:
            yield DiagramEvent("note", client_name(client), f"*{self._recipe.belief}{'' if now else ' no more'}*")

    def _writes(self, client: int, move: Move, before: Row, after: Row) -> Iterator[DiagramEvent]:
        if not self._setup.writes:
            return
        lane, mail = client_name(client), mail_name(client)
        arrives = isinstance(operation_on(mail, move), WriteArrives)
        writes = changes(self._at(before, mail), self._at(after, mail), 0 if arrives else None)
        for write in writes.arrived:
            yield DiagramEvent("deliver", RESOURCE, f"write, token {write.token}", peer=lane)
            old, new = (self._at(row, RESOURCE) for row in (before, after))
            refused = write.token < old.token and new.stale == old.stale
            yield DiagramEvent("note", RESOURCE, "*refuses it*" if refused else "accepts it")
        for write in writes.sent:
            yield DiagramEvent("send", lane, f"write, token {write.token}", peer=RESOURCE)

    def _traffic(self, client: int, move: Move, before: Row, after: Row) -> Iterator[DiagramEvent]:
        """The requests, replies and notifications of one connection; its end is shown by other events."""
        lane, name = client_name(client), link_name(client)
        requests, late, messages = traffic(self._at(before, name), self._at(after, name), operation_on(name, move))
        for request in map(api_request, requests.arrived + late.arrived):
            yield DiagramEvent("deliver", SERVICE, request, peer=lane)
        for message in _without_end(messages.arrived):
            yield DiagramEvent("deliver", lane, message, peer=SERVICE)
        for message in _without_end(messages.lost):
            yield DiagramEvent("lost", SERVICE, message, peer=lane)
        for request in map(api_request, late.lost + requests.lost):
            yield DiagramEvent("lost", lane, request, peer=SERVICE)
        for message in _without_end(messages.sent):
            yield DiagramEvent("send", SERVICE, message, peer=lane)
        for request in map(api_request, requests.sent):
            yield DiagramEvent("send", lane, request, peer=SERVICE)


def _without_end(messages: tuple[ServerMessage, ...]) -> Iterator[str]:
    return (api_message(message) for message in messages if not isinstance(message, ConnectionClosed))


def _znodes(store: FrozenStore) -> list[tuple[str, Any]]:
    return [(path, znode) for path, znode in store.nodes if path.startswith(ROOT) and path != ROOT]


def _behind(own: FrozenStore, newest: FrozenStore) -> str:
    """The transactions that a server has not applied, as the znodes that it lacks and those that it still has."""
    old, new = ([short_path(path) for path, _ in _znodes(store)] for store in (own, newest))
    lacks, keeps = ([path for path in one if path not in other] for one, other in ((new, old), (old, new)))
    parts = [f"{word} {', '.join(paths)}" for word, paths in (("lacks", lacks), ("still has", keeps)) if paths]
    return ", ".join(parts) or "lags"


_CAPTIONS: dict[str, Callable[..., str]] = {
    RecipeAction.WANT: lambda by, c: f"{client_name(c)} wants to {by.word}",
    RecipeAction.RELEASE: lambda by, c: f"{client_name(c)} {by.farewell}",
    RecipeAction.REACH: lambda _, c, token: f"a write of {client_name(c)} arrives, token {token}",
    RecipeAction.REMOVE: lambda _, path: f"an operator deletes {short_path(path)}",
    ServiceAction.ARRIVE: lambda by, c, k, record: (
        f"{api_request(record)} of {client_name(c)} arrives{by.place(' at', k)}"
    ),
    ServiceAction.ARRIVE_LATE: lambda _, c, record: f"{api_request(record)} of {client_name(c)} arrives late",
    ServiceAction.APPLY: lambda _, k, first: f"server {k} applies {api_commit(first)}",
    ServiceAction.DELIVER: lambda _, c, _k, message: f"{client_name(c)} hears {api_message(message, brief=True)}",
    ServiceAction.DISCONNECT: lambda _, c, _k: f"{client_name(c)} loses its connection",
    ServiceAction.RECONNECT: lambda by, c, k: f"{client_name(c)} reconnects{by.place(' to', k)}",
    ServiceAction.OPEN: lambda by, c, k: f"{client_name(c)} asks for a new session{by.place(' at', k)}",
    ServiceAction.LAPSE: lambda _, c: f"the session of {client_name(c)}, which has crashed, ends",
}
"""The sentence for each action: of the applications, of their resource, of an operator, and of the service."""
