"""Clients that run scripts, to check the guarantees of the service.

A script is a list of steps; a step is one or several requests to choose from. A client sends its steps in order, each
once, and the next one only while fewer than `pipeline` are unanswered. A request that a lost connection left unanswered
is not sent again; the properties consider both outcomes. Each update writes different data, `b"2.1"` for the first step
of client 2 (`b"2.1b"` if that is the second request of a choice), so that an update can be recognised everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from string import ascii_lowercase
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from checker.engine import Actor, Column, Move, Outcome, Read, Rule, Send
from checker.kit.environment import ModelFragment
from checker.models.service import observations as notes_of
from checker.models.service.messages import (
    ClientCrash,
    ConnectionLoss,
    ConnectionStart,
    Delivery,
    SendRequest,
    SessionExpiry,
    WatchNotification,
)
from checker.models.service.observations import Expected, Note, Observations
from checker.models.service.servers import Leader
from checker.models.service.setup import LEADER, ServiceSetup, client_name, link_name
from spec.text import required_integer
from spec.tree.data import Record
from spec.tree.requests import CloseSession, Create, Multi, SetData

ScriptStep: TypeAlias = tuple[Record, ...]
"""The requests that a client chooses from."""


@dataclass(frozen=True)
class Script:
    """The requests of a client, and the number of them that it leaves unanswered before it waits.

    `expected` has the right answer to each step, or None; it is empty if no answer is expected.
    """

    steps: tuple[ScriptStep, ...]
    pipeline: int = 1
    expected: tuple[Expected | None, ...] = ()

    @classmethod
    def of(cls, *steps: Record | Sequence[Record], pipeline: int = 1) -> Script:
        """A script; a step of one request needs no list."""
        return cls(tuple((step,) if isinstance(step, Record) else tuple(step) for step in steps), pipeline)

    def with_tags(self, client: int) -> Script:
        """The same script, with the tag of each update as its data."""
        return Script(
            tuple(
                tuple(
                    with_data(record, tag(client, number, place if len(step) > 1 else None))
                    for place, record in enumerate(step)
                )
                for number, step in enumerate(self.steps, 1)
            ),
            self.pipeline,
            self.expected,
        )


def tag(client: int, step: int, choice: int | None = None) -> bytes:
    """The data of an update: `2.1`, or `2.1b` for the second request of a choice."""
    return f"{client}.{step}{'' if choice is None else chr(ord('a') + choice)}".encode()


def step_of_tag(data: bytes) -> tuple[int, int]:
    """The client and the step of an update, from its data."""
    client, _, step = data.decode().partition(".")
    return required_integer(client), required_integer(step.rstrip(ascii_lowercase))


def with_data(record: Record, data: bytes) -> Record:
    """The request with this data, if it writes data."""
    if isinstance(record, Multi):
        return Multi(tuple(with_data(operation, data) for operation in record.operations))
    return replace(record, data=data) if isinstance(record, Create | SetData) else record


class ScriptPosition(msgspec.Struct, frozen=True):
    """A client's position in its script: `step` is the next one, from 0; `outstanding` has the unanswered requests."""

    step: int = 0
    connected: bool = True
    outstanding: tuple[Record, ...] = ()
    memory: Observations = Observations()


class Choose(msgspec.Struct, frozen=True):
    """Send this as the next step, while the leader is at this zxid (0 if no note needs it)."""

    record: Record
    zxid: int = 0


def scripted_clients(setup: ServiceSetup, scripts: Sequence[Script], notes: Iterable[Note]) -> ModelFragment:
    """The clients of a service, one for each script."""
    note_set = frozenset(notes)
    clients = [_Scripted(client, setup, script, note_set) for client, script in enumerate(scripts, 1)]
    return ModelFragment(
        tuple(Column(client_name(client), ScriptPosition()) for client in setup.client_ids),
        tuple(Actor(client.name, (client.name,), client.step) for client in clients),
        tuple(client.rule() for client in clients),
    )


class _Scripted:
    def __init__(self, client: int, setup: ServiceSetup, script: Script, notes: frozenset[Note]) -> None:
        self.name, self._client, self._notes = client_name(client), client, notes
        self._script, self._setup = script, setup

    def rule(self) -> Rule:
        timed = Note.FRESHNESS in self._notes

        def next_step(standing: ScriptPosition) -> int | None:
            ready = standing.connected and len(standing.outstanding) < self._script.pipeline
            return standing.step if ready and standing.step < len(self._script.steps) else None

        def moves(step: int, zxid: int = 0) -> Iterator[Move]:
            for record in self._script.steps[step]:
                yield Move("ask", (self._client, record), (Send(self.name, Choose(record, zxid)),))

        when = (Read(LEADER, _zxid),) if timed else ()
        return Rule(f"{self.name} asks", (Read(self.name, next_step), *when), moves)

    def step(self, values: tuple[Any, ...], said: Any) -> Outcome:
        standing: ScriptPosition = values[0]
        if isinstance(said, Choose):
            after = replace(
                standing,
                step=standing.step + 1,
                outstanding=(*standing.outstanding, said.record),
                memory=notes_of.after_request(standing.memory, self._notes, said.zxid),
            )
            return Outcome((after,), (Send(link_name(self._client), SendRequest(said.record)),))
        return Outcome((self._heard(standing, said),))

    def _heard(
        self, standing: ScriptPosition, said: Delivery | ConnectionLoss | ConnectionStart | SessionExpiry | ClientCrash
    ) -> ScriptPosition:
        memory = standing.memory
        match said:
            case Delivery(WatchNotification() as notice):
                return replace(standing, memory=notes_of.after_notification(memory, self._notes, notice))
            case Delivery(answer):
                if isinstance(answer.asked, CloseSession):  # type: ignore[union-attr]
                    return self._over(memory)
                place = standing.outstanding.index(answer.asked)  # type: ignore[union-attr]
                rest = standing.outstanding[:place] + standing.outstanding[place + 1 :]
                memory = notes_of.after_reply(memory, self._notes, answer, place)  # type: ignore[arg-type]
                if Note.ANSWERS in self._notes and self._script.expected:
                    expected = self._script.expected[standing.step - 1]  # the client waits for each reply
                    memory = notes_of.after_comparison(memory, expected, answer)  # type: ignore[arg-type]
                return replace(standing, outstanding=rest, memory=memory)
            case ConnectionLoss():
                if any(isinstance(record, CloseSession) for record in standing.outstanding):
                    return self._over(memory)
                memory = notes_of.after_loss(memory, self._notes, keeps_watches=self._setup.keeps_watches)
                return ScriptPosition(standing.step, False, (), memory)
            case ConnectionStart():
                return replace(standing, connected=True)
            case SessionExpiry():
                return ScriptPosition(standing.step, False, (), notes_of.without_session(memory))
            case _:
                return self._over(memory)

    def _over(self, memory: Observations) -> ScriptPosition:
        return ScriptPosition(len(self._script.steps), False, (), notes_of.without_session(memory))


def _zxid(leader: Leader) -> int:
    return leader.zxid
