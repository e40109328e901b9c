"""The environment of servers: processes start and end, an operator follows a plan, links are cut and heal.

A process that ends resets its connections. Its learners notice this before the process is back, because a reset takes
less time than a start; behind a cut link they have timed out by then. Where the model has no connections, a server
therefore does not boot while another server still follows its earlier life: otherwise the follower of a former life
would be counted as a follower of the next one.

Messages in flight on a cut link are lost; messages in a send queue, and the last one sent, are not. A healed link does
not reconnect its servers: the next message does.
"""

from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import Any

from checker.engine import Move, Read, Rule, Send
from checker.kit.actions import FAULTS, has_left, limited_rule, spend
from checker.kit.environment import LINKS, LinkChange, cut_rule, splits
from checker.models.ensemble.actions import ServerAction
from checker.models.ensemble.columns import (
    CRASH,
    ChannelTransition,
    ConnectionsEnded,
    DiskReplaced,
    SoftwareReplaced,
    reachable,
)
from checker.models.ensemble.connection import Disconnection
from checker.models.ensemble.setup import (
    CONNECTIONS,
    PLAN,
    File,
    Grain,
    Link,
    PlannedAction,
    PlannedReconfig,
    Setup,
    channel_name,
    connection_name,
    server_name,
)
from checker.models.ensemble.status import ElectionStatus, election_status, has_peer_ports, has_rejoined, is_running
from spec.durable import Durable
from spec.election.messages import Start
from spec.quorum import Sid, View
from spec.server import Server
from spec.zab.events import ClientWrite
from spec.zab.reconfiguration import Refused, proposed
from spec.zab.state import Leader as LeaderState

Leader = Sid | str
"""The leader of a server, or one of the two words below."""
DOWN, NOBODY = "down", "nobody"
EMPTY_DISK, EARLIER_DISK = "an empty disk", "a disk of an earlier time"
THE_OWN = "the file that it keeps itself"  # for a view that a server has learnt from others


def rules(setup: Setup) -> list[Rule]:
    """The rules of processes and links, without those that a budget of zero disables for the whole run."""
    parts = [_start(setup, member.sid) for member in setup.members if member.late]
    if setup.budgets.crashes:
        parts += [_crash(setup, sid) for sid in setup.sids]
    if setup.budgets.crashes and setup.budgets.restarts:
        parts += [_restart(setup, sid) for sid in setup.sids]
    for number, (name, planned) in enumerate(setup.planned.items()):
        if isinstance(planned, PlannedReconfig):
            parts.append(_reconfig(setup, number, name, planned))
        else:
            parts.append(_planned(setup, number, name, planned))
    return [*parts, *_links(setup)]


def boot(setup: Setup, sid: Sid, file: File, seen: dict[Sid, Leader], cut: frozenset[Link]) -> tuple[Send, ...] | None:
    """A server starts with a file: connections become possible, then its first election begins.

    With a standalone file there are no connections and no election. None while another server still follows it, unless
    connections distinguish the lives of a server.
    """
    if setup.zab is None and sid in seen.values():
        return None
    near = [p for p, leader in seen.items() if leader != DOWN and (min(sid, p), max(sid, p)) not in cut]
    sends: list[Send] = []
    if setup.grain is Grain.FINE and not file.view.standalone:
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
                sends.append(Send(channel_name(sid, peer), ChannelTransition.SELF_CRASHED))
                sends.append(Send(channel_name(peer, sid), ChannelTransition.PEER_CRASHED))
    return tuple(sends)


def _leader(server: Server) -> Leader:
    """The leader of a server as its peers see it, or the reason why it has no leader."""
    return _leader_of(election_status(server))


def _leader_of(found: ElectionStatus | str) -> Leader:
    if isinstance(found, str) or found.is_standalone:
        return DOWN  # to other servers
    return NOBODY if found.leader is None else found.leader


def _boots(setup: Setup, gate: Read, action: ServerAction, sid: Sid, others: Iterable[File]) -> Rule:
    """A rule that starts a server with its present file or one of `others`, when `gate` allows it.

    The rule does not read a server that can only ever have one view.
    """
    by_view = {file.view: file for file in reversed(setup.files_of(sid))}
    first = setup.views_of(sid)[0]
    own_view = Read(server_name(sid), lambda server: None if is_running(server) else server.view)
    gates = (gate, own_view) if len(setup.possible_views(sid)) > 1 else (gate,)

    def files(view: View = first) -> Iterable[File]:
        """The file with this view, or a file named `THE_OWN` for a view learnt from others, and then `others`."""
        return dict.fromkeys((by_view.get(view, File(THE_OWN, view)), *others))

    def to_start(file: File, sends: tuple[Send, ...]) -> Move:
        return Move(action, (sid, file.name), (spend(action, started=sid), *sends))

    if setup.zab is not None and setup.grain is Grain.ORACLE:
        return Rule(
            f"{action} {sid}",
            gates,
            lambda _, *view: [to_start(file, (Send(server_name(sid), Start(file.view)),)) for file in files(*view)],
            (action,),
        )
    peers = [peer for peer in setup.sids if peer != sid]

    def moves(_: Any, *read: Any) -> list[Move]:
        view, cut, leaders = read[: len(gates) - 1], read[len(gates) - 1], read[len(gates) :]
        leader_of_peer = dict(zip(peers, leaders, strict=True))
        booted = [(file, boot(setup, sid, file, leader_of_peer, cut)) for file in files(*view)]
        return [to_start(file, sends) for file, sends in booted if sends is not None]

    reads = (*gates, Read(LINKS), *(Read(server_name(peer), _leader) for peer in peers))
    return Rule(f"{action} {sid}", reads, moves, (action,))


def _start(setup: Setup, sid: Sid) -> Rule:
    gate = Read(FAULTS, lambda faults: True if sid in faults.late else None)
    return _boots(setup, gate, ServerAction.START, sid, ())


def _restart(setup: Setup, sid: Sid) -> Rule:
    member = next(member for member in setup.members if member.sid == sid)
    gate = Read(FAULTS, lambda faults: True if sid in faults.down and faults.left.restarts > 0 else None)
    return _boots(setup, gate, ServerAction.RESTART, sid, member.other_files)


def _member_file(setup: Setup, sid: Sid) -> File:
    return next(member.file for member in setup.members if member.sid == sid)


def _crash(setup: Setup, sid: Sid) -> Rule:
    up = Read(server_name(sid), lambda server: True if is_running(server) else None)
    return limited_rule(ServerAction.CRASH, sid, (sid,), stop(setup, sid), up, crashed=sid)


def _reconfig(setup: Setup, number: int, name: str, planned: PlannedReconfig) -> Rule:
    size, rules_of_leader = len(setup.sids), setup.zab
    assert rules_of_leader is not None  # `check_plan` in checker.scenario

    def moves(_: bool, *seen: Any) -> list[Move] | None:
        standings = dict(zip(setup.sids, seen[:size], strict=True))
        if not all(has_rejoined(standings, sid) for sid in planned.after):
            return None
        leaders = [sid for sid, accepts in zip(setup.sids, seen[size:], strict=True) if accepts]
        command = ClientWrite(planned.change)
        return [Move(name, (sid,), (Send(PLAN, "done"), Send(server_name(sid), command))) for sid in leaders]

    def accepts(server: Server) -> bool:
        leader = server.zab
        if not isinstance(leader, LeaderState) or not leader.serves:
            return False
        zxid = leader.last_proposed + 1
        return not isinstance(proposed(server.peer, leader, planned.change, zxid, rules_of_leader), Refused)

    reads = (
        Read(PLAN, lambda done: True if done == number else None),
        *(Read(server_name(sid), election_status) for sid in setup.sids),
        *(Read(server_name(sid), accepts) for sid in setup.sids),
    )
    return Rule(name, reads, moves, (name,))


def _planned(setup: Setup, number: int, name: str, planned: PlannedAction) -> Rule:
    file = planned.file or _member_file(setup, planned.sid)
    keeps = planned.file is None and not setup.is_static  # a reconfiguration changes the file of a server
    loaded: tuple[str, ...] = (file.name,) if planned.file or planned.disk is not None else ()
    if planned.disk is not None:
        loaded += (EMPTY_DISK if planned.disk == Durable() else EARLIER_DISK,)
    if planned.software is not None:
        loaded += (planned.software.name,)

    def moves(_: bool, cut: frozenset[Link], view: View, *seen: ElectionStatus | str) -> list[Move] | None:
        standings = dict(zip(setup.sids, seen, strict=True))
        if not all(has_rejoined(standings, sid) for sid in planned.after):
            return None
        leader_of_peer = {sid: _leader_of(standing) for sid, standing in standings.items() if sid != planned.sid}
        sends: tuple[Send, ...] | None = stop(setup, planned.sid)
        if planned.action == "start":
            sends = boot(setup, planned.sid, File(file.name, view), leader_of_peer, cut)
        if sends is None:
            return None
        if planned.disk is not None:
            sends = (Send(server_name(planned.sid), DiskReplaced(planned.disk)), *sends)
        if planned.software is not None:
            sends = (Send(server_name(planned.sid), SoftwareReplaced(planned.software.defects)), *sends)
        return [Move(name, (planned.sid, *loaded), (Send(PLAN, "done"), *sends))]

    reads = (
        Read(PLAN, lambda done: True if done == number else None),
        Read(LINKS),
        Read(server_name(planned.sid), lambda server: server.view if keeps else file.view),
        *(Read(server_name(sid), election_status) for sid in setup.sids),
    )
    return Rule(name, reads, moves, (name,))


# Links.


def _links(setup: Setup) -> Iterator[Rule]:
    budgets = setup.budgets
    if budgets.cuts:
        for a, b in combinations(setup.sids, 2):
            yield _cut(setup, ServerAction.CUT, f"{a} {b}", (a, b), ((a, b),))
    if budgets.partitions:
        yield from (
            _cut(setup, ServerAction.PARTITION, str(side), (side,), crossing) for side, crossing in splits(setup.sids)
        )
    if budgets.heals:
        yield _heal(setup)


def _cut(setup: Setup, action: ServerAction, label: str, arguments: tuple[Any, ...], links: tuple[Link, ...]) -> Rule:
    """A link is cut, or all links between two sides: messages in flight on it are lost."""
    sends: list[Send] = []
    if setup.keeps_connections:
        sends.append(Send(CONNECTIONS, ConnectionsEnded(cut=frozenset(links))))
    if setup.grain is Grain.FINE:
        crossing = [(a, b) for one, other in links if setup.talk(one, other) for a, b in ((one, other), (other, one))]
        sends += [Send(channel_name(a, b), ChannelTransition.CUT) for a, b in crossing]
    if setup.zab is not None:
        sends += [Send(connection_name(*link), Disconnection()) for link in links if link in setup.quorum_pairs]
    return cut_rule(action, label, arguments, frozenset(links), sends)


def _heal(setup: Setup) -> Rule:
    """Every link is up again; this does not reconnect any servers."""

    def moves(_: bool, cut: frozenset[Link], *running: bool) -> list[Move]:
        up = {sid for sid, runs in zip(setup.sids, running, strict=True) if runs}
        sends = [spend(ServerAction.HEAL), Send(LINKS, LinkChange(healed=True))]
        if setup.grain is Grain.FINE:
            for one, other in sorted(cut):
                if {one, other} <= up and setup.talk(one, other):
                    sends += reachable(one, other)
        return [Move(ServerAction.HEAL, (), tuple(sends))]

    any_cut = Read(LINKS, lambda cut: cut or None)
    running = (Read(server_name(sid), has_peer_ports) for sid in setup.sids)
    return Rule("heal", (has_left(ServerAction.HEAL), any_cut, *running), moves, (ServerAction.HEAL,))
