"""The vocabulary of all recipes: the events that they receive, the requests that they send and the facts they report.

A recipe is a pure client state machine, `step(rules, state, event) -> Step(state, effects)`. Its caller keeps the
connection: the checker with its model of the service, an application with a real client library.

Rules of this module, for the recipes and for their callers:

- At most one request is outstanding. Each `Ask` gets exactly one `Answered` or `Unanswered`, before the next `Ask`.
- `Unanswered` means that the connection was lost before the reply arrived. The server may have executed the request,
  and it may still execute it until the client is connected again, but not later.
- `Suspended`: the connection is lost and the session may still be alive. `Expired`: the session is known to have
  expired. `Connected` follows either; `resumed` means that the session is the same as before.
- Watches do not outlive a connection, as in kazoo. With a client that keeps them (Java's), an extra notification is
  harmless.
- `id` belongs to this client alone: no other client uses it in the name of a znode. It is an input, because a step has
  no source of randomness.

Source: `org.apache.curator.framework.state.ConnectionState`; kazoo's `KazooState`.
"""

from typing import TypeAlias, TypeVar

import msgspec

from spec.effects import Fact, Observe, Step
from spec.tree.apply import EventType
from spec.tree.data import Record
from spec.tree.replies import Code

S = TypeVar("S")


class Join(msgspec.Struct, frozen=True):
    """Take part: run for election, or acquire the lock."""

    id: str


class Leave(msgspec.Struct, frozen=True):
    """Stop taking part: release, close, or give up waiting."""


class Returned(msgspec.Struct, frozen=True):
    """The application's `take_leadership` has returned, or has raised."""


class Interrupted(msgspec.Struct, frozen=True):
    """The application wants its running `take_leadership` to end, and to remain a candidate."""


class Answered(msgspec.Struct, frozen=True):
    """The reply to the outstanding request."""

    code: Code
    reply: Record | None = None


class Unanswered(msgspec.Struct, frozen=True):
    """The outstanding request will get no reply."""


class Notified(msgspec.Struct, frozen=True):
    """A watch has fired."""

    type: EventType
    path: str


class Suspended(msgspec.Struct, frozen=True):
    """The connection is lost."""


class Connected(msgspec.Struct, frozen=True):
    """A connection exists, of the previous session or of a new one. `id` is for a znode yet to be created."""

    resumed: bool
    id: str


class Expired(msgspec.Struct, frozen=True):
    """The session has expired, and its ephemeral znodes are deleted."""


Event: TypeAlias = (
    Join | Leave | Returned | Interrupted | Answered | Unanswered | Notified | Suspended | Connected | Expired
)


class Ask(msgspec.Struct, frozen=True):
    """Send this request."""

    record: Record


class Holds(Fact, frozen=True):
    """The client now holds the lock, or leads. `token` is its znode's czxid, a fencing token."""

    path: str
    token: int


class HoldsNoMore(Fact, frozen=True):
    """The client no longer holds the lock, or leads, as far as it knows."""

    why: str


class First(Fact, frozen=True):
    """The client knows that it is first, with the znode at this path, and announces itself."""

    path: str


class Waits(Fact, frozen=True):
    """The client waits for a change at this path."""

    behind: str


class Follows(Fact, frozen=True):
    """The client knows the leader; `leader` identifies it by its znode, or by its id in the unfair election."""

    leader: str


class TakeLeadership(Fact, frozen=True):
    """Call the application's `take_leadership` now."""

    token: int


class Interrupt(Fact, frozen=True):
    """The running `take_leadership` has to end."""


class Withdrawn(Fact, frozen=True):
    """The client does not take part any longer, and has no znode."""


class Failed(Fact, frozen=True):
    """The servers refuse a request that the recipe needs, and the client does not take part any longer."""

    code: Code


Effect: TypeAlias = Ask | Observe


RecipeStep: TypeAlias = Step[S, Effect]
"""The outcome of one event of a recipe."""


def facts(effects: tuple[Effect, ...]) -> tuple[Fact, ...]:
    """The facts that these effects report."""
    return tuple(effect.fact for effect in effects if isinstance(effect, Observe))
