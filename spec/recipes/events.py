"""What a recipe hears, what it asks for, and what it reports: the words that every recipe here is written in.

A recipe is a pure client state machine, `step(rules, state, event) -> Step(state, effects)`. Whoever runs it keeps
the connection: the checker with its model of the service, an application with a real client library.

Rules of this module, which both sides keep:

- At most one request is outstanding. `Answered` or `Unanswered` belongs to the last `Ask`, and each `Ask` gets one.
- `Unanswered` says that the connection was lost before the answer came: the server may have done it, may not have,
  and may still do it until the client is connected again, but not after that.
- `Suspended`: the connection is gone and the session may live. `Expired`: the session is known to be gone.
  `Connected` ends either; `resumed` says that the session is the one from before.
- Watches do not outlive a connection, as those of kazoo do not. Where they do (Java's client) a notice too many
  is harmless.
- `id` is this client's: no other client's znode is ever named with it. It comes from outside, since a step knows no
  randomness.

Source: `org.apache.curator.framework.state.ConnectionState`; kazoo's `KazooState`.
"""

from typing import Generic, TypeAlias, TypeVar

import msgspec

from spec.effects import Fact, Observe
from spec.tree.apply import EventType
from spec.tree.fields import Record
from spec.tree.replies import Code

S = TypeVar("S")


class Wanted(msgspec.Struct, frozen=True):
    """Take part: stand for election, or acquire the lock."""

    id: str


class Unwanted(msgspec.Struct, frozen=True):
    """Take part no more: release, close, or give up waiting."""


class Returned(msgspec.Struct, frozen=True):
    """The application's `take_leadership` has returned, or has raised."""


class Interrupted(msgspec.Struct, frozen=True):
    """The application wants its running `take_leadership` to end, and to stay in the election."""


class Answered(msgspec.Struct, frozen=True):
    """The answer to the outstanding request."""

    code: Code
    reply: Record | None = None


class Unanswered(msgspec.Struct, frozen=True):
    """The outstanding request will have no answer."""


class Notified(msgspec.Struct, frozen=True):
    """A watch has fired."""

    type: EventType
    path: str


class Suspended(msgspec.Struct, frozen=True):
    """The connection is gone."""


class Connected(msgspec.Struct, frozen=True):
    """There is a connection: of the session from before, or of a new one. `id` is for a znode yet to be created."""

    resumed: bool
    id: str


class Expired(msgspec.Struct, frozen=True):
    """The session is gone, and its ephemeral znodes with it."""


Event: TypeAlias = (
    Wanted | Unwanted | Returned | Interrupted | Answered | Unanswered | Notified | Suspended | Connected | Expired
)


class Ask(msgspec.Struct, frozen=True):
    """Send this request."""

    record: Record


class Holds(Fact, frozen=True):
    """From now on the client holds the lock, or leads. `token` is its znode's czxid, which fences."""

    path: str
    token: int


class HoldsNoMore(Fact, frozen=True):
    """From now on the client does not hold the lock, or lead, as far as it knows."""

    why: str


class First(Fact, frozen=True):
    """The client knows that it is first, with the znode at this path, and announces itself."""

    path: str


class Waits(Fact, frozen=True):
    """The client waits for a change at this path."""

    behind: str


class Follows(Fact, frozen=True):
    """The client knows who leads: the znode of the leader."""

    leader: str


class TakeLeadership(Fact, frozen=True):
    """Call the application's `take_leadership` now."""

    token: int


class Interrupt(Fact, frozen=True):
    """The running `take_leadership` is to end."""


class Gone(Fact, frozen=True):
    """The client takes no part any more, and has no znode."""


class Failed(Fact, frozen=True):
    """The servers refuse what the recipe needs; the client takes no part any more."""

    code: Code


Effect: TypeAlias = Ask | Observe


class Step(msgspec.Struct, Generic[S], frozen=True):
    """The outcome of one event: the new state, and the effects in their order."""

    state: S
    effects: tuple[Effect, ...] = ()


def facts(effects: tuple[Effect, ...]) -> tuple[Fact, ...]:
    """What these effects report."""
    return tuple(effect.fact for effect in effects if isinstance(effect, Observe))
