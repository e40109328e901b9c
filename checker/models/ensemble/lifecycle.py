"""The start and end of processes: late starts, crashes, restarts, and the actions of an operator's plan.

A process that ends resets its connections. Its learners notice this before the process is back, because a reset takes
less time than a start; behind a cut link they have timed out by then. Where the model has no connections, a server
therefore does not boot while another server still follows its earlier life: otherwise the follower of a former life
would be counted as a follower of the next one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from checker.engine import Move, Read, Rule, Send
from checker.models.ensemble.columns import CRASH, ERASE, Change, ConnectionsEnded, reachable
from checker.models.ensemble.faults import Spend, has_left
from checker.models.ensemble.names import CONNECTIONS, FAULTS, LINKS, PLAN, Link, channel_name, server_name
from checker.models.ensemble.setup import File, Grain, PlannedAction, Setup
from checker.models.ensemble.status import ElectionStatus, election_status, has_rejoined, is_running
from spec.election.messages import Start
from spec.quorum import Sid, View
from spec.server import Server

Leader = Sid | str
"""The leader of a server, or one of the two words below."""
DOWN, NOBODY = "down", "nobody"
EMPTY_DISK = "an empty disk"
THE_OWN = "the file that it keeps itself"  # for a view that a server has learnt from others


def rules(setup: Setup) -> list[Rule]:
    """The rules of processes, without those that a budget of zero disables for the whole run."""
    made = [_start(setup, member.sid) for member in setup.members if member.late]
    if setup.budgets.crashes:
        made += [_crash(setup, sid) for sid in setup.sids]
    if setup.budgets.crashes and setup.budgets.restarts:
        made += [_restart(setup, sid) for sid in setup.sids]
    return [*made, *(_planned(setup, number) for number in range(len(setup.plan)))]


def boot(setup: Setup, sid: Sid, file: File, seen: dict[Sid, Leader], cut: frozenset[Link]) -> tuple[Send, ...] | None:
    """A server starts with a file: connections become possible, then its first election begins.

    None while another server still follows it, unless connections distinguish the lives of a server.
    """
    if setup.zab is None and sid in seen.values():
        return None
    near = [p for p, leader in seen.items() if leader != DOWN and (min(sid, p), max(sid, p)) not in cut]
    sends: list[Send] = []
    if setup.grain is Grain.FINE:
        for peer in near:
            if setup.talk(sid, peer):
                sends += reachable(sid, peer)
    return (*sends, Send(server_name(sid), Start(file.view)))


def stop(setup: Setup, sid: Sid) -> tuple[Send, ...]:
    """A server's process ends: messages from it may still arrive, messages to it are lost."""
    sends = [Send(server_name(sid), CRASH)]
    if setup.keeps_connections:
        sends.append(Send(CONNECTIONS, ConnectionsEnded(sid)))
    if setup.grain is Grain.FINE:
        for peer in setup.sids:
            if peer != sid and setup.talk(sid, peer):
                sends.append(Send(channel_name(sid, peer), Change("self_crashed")))
                sends.append(Send(channel_name(peer, sid), Change("peer_crashed")))
    return tuple(sends)


def _leader(server: Server) -> Leader:
    """The leader of a server, or the reason why it has no leader."""
    return _leader_of(election_status(server))


def _leader_of(found: ElectionStatus | str) -> Leader:
    if isinstance(found, str):
        return DOWN
    return NOBODY if found.leader is None else found.leader


def _boots(setup: Setup, gate: Read, action: str, sid: Sid, others: Iterable[File], spend: Spend) -> Rule:
    """A rule that starts a server with its present file or one of `others`, when `gate` allows it.

    The rule does not read a server that can only ever have one view.
    """
    by_view = {file.view: file for file in reversed(setup.files_of(sid))}
    first = setup.views_of(sid)[0]
    own = Read(server_name(sid), lambda server: None if is_running(server) else server.view)
    gates = (gate, own) if len(setup.possible_views(sid)) > 1 else (gate,)

    def files(view: View = first) -> Iterable[File]:
        """The file with this view, or a file named `THE_OWN` for a view learnt from others, and then `others`."""
        return dict.fromkeys((by_view.get(view, File(THE_OWN, view)), *others))

    def to_start(file: File, sends: tuple[Send, ...]) -> Move:
        return Move(action, (sid, file.name), (Send(FAULTS, spend), *sends))

    if setup.zab is not None and setup.grain is Grain.ORACLE:
        return Rule(
            f"{action} {sid}",
            gates,
            lambda _, *view: [to_start(file, (Send(server_name(sid), Start(file.view)),)) for file in files(*view)],
        )
    peers = [other for other in setup.sids if other != sid]

    def moves(_: Any, *read: Any) -> list[Move]:
        view, cut, leaders = read[: len(gates) - 1], read[len(gates) - 1], read[len(gates) :]
        seen = dict(zip(peers, leaders, strict=True))
        booted = [(file, boot(setup, sid, file, seen, cut)) for file in files(*view)]
        return [to_start(file, sends) for file, sends in booted if sends is not None]

    reads = (*gates, Read(LINKS), *(Read(server_name(other), _leader) for other in peers))
    return Rule(f"{action} {sid}", reads, moves)


def _start(setup: Setup, sid: Sid) -> Rule:
    gate = Read(FAULTS, lambda faults: True if sid in faults.late else None)
    return _boots(setup, gate, "start", sid, (), Spend(None, started=sid))


def _restart(setup: Setup, sid: Sid) -> Rule:
    member = next(member for member in setup.members if member.sid == sid)
    gate = Read(FAULTS, lambda faults: True if sid in faults.down and faults.left.restarts > 0 else None)
    return _boots(setup, gate, "restart", sid, member.other_files, Spend("restarts", started=sid))


def _member_file(setup: Setup, sid: Sid) -> File:
    return next(member.file for member in setup.members if member.sid == sid)


def _crash(setup: Setup, sid: Sid) -> Rule:
    def moves(_: bool, running: bool) -> list[Move]:  # noqa: ARG001 (both are gates)
        return [Move("crash", (sid,), (Send(FAULTS, Spend("crashes", crashed=sid)), *stop(setup, sid)))]

    up = Read(server_name(sid), lambda server: True if is_running(server) else None)
    return Rule(f"crash {sid}", (has_left("crashes"), up), moves)


def _planned(setup: Setup, number: int) -> Rule:
    """The operator's next action, enabled when the servers in `after` have rejoined."""
    planned: PlannedAction = setup.plan[number]
    name = f"plan {number + 1}: {planned.action} {planned.sid}"  # one rule each, so that coverage shows a stuck plan

    file = planned.file or _member_file(setup, planned.sid)
    loaded: tuple[str, ...] = (file.name,) if planned.file or planned.empty else ()
    loaded += (EMPTY_DISK,) if planned.empty else ()

    def moves(_: bool, cut: frozenset[Link], *seen: ElectionStatus | str) -> list[Move] | None:
        standings = dict(zip(setup.sids, seen, strict=True))
        if not all(has_rejoined(standings, sid) for sid in planned.after):
            return None
        others = {sid: _leader_of(each) for sid, each in standings.items() if sid != planned.sid}
        sends: tuple[Send, ...] | None = stop(setup, planned.sid)
        if planned.action == "start":
            sends = boot(setup, planned.sid, file, others, cut)
        if sends is None:
            return None
        if planned.empty:
            sends = (Send(server_name(planned.sid), ERASE), *sends)
        return [Move(name, (planned.sid, *loaded), (Send(PLAN, "done"), *sends))]

    reads = (
        Read(PLAN, lambda done: True if done == number else None),
        Read(LINKS),
        *(Read(server_name(sid), election_status) for sid in setup.sids),
    )
    return Rule(name, reads, moves)
