"""The beginning of a schedule on real servers: its initial state, and then no packet and no write moves."""

from functools import partial

from checker.models.ensemble.actions import Action
from harness.reproduce.comparison import Comparison
from harness.reproduce.disks import path_of
from harness.reproduce.elections import ElectionControl, vote_of
from harness.reproduce.lab import Lab, wait_for
from harness.reproduce.proxies import Way
from harness.reproduce.schedule import Schedule
from harness.session import Session
from refimpl.wire.packet import PacketType
from spec.quorum import Sid
from spec.zab.state import Leader

SECONDS_TO_START = 90.0
DISCOVERY = frozenset({PacketType.FOLLOWERINFO, PacketType.OBSERVERINFO, PacketType.LEADERINFO, PacketType.ACKEPOCH})
UNMODELLED = frozenset({PacketType.PING, PacketType.REVALIDATE})
EVERY_TYPE = frozenset(int(each) for each in PacketType)
STALL_ZNODES = 100_000


def begin(schedule: Schedule, lab: Lab, elections: ElectionControl) -> dict[Sid, Session]:
    """Start the servers, wait until they have the roles and logs of the initial state, then hold everything.

    The result is a session at each server that serves and where a client writes. Raises HarnessError, ServerError or
    OSError.
    """
    row, compare = schedule.initial, Comparison(schedule, lab)
    slow_reads = any(
        schedule.serves(step.before, sid) for step in schedule.steps for sid in schedule.commits_late(step)
    )
    for member in schedule.setup.members:
        lab.write_disk(member.sid, member.durable, STALL_ZNODES if slow_reads else 0)
        lab.configure(member.sid, schedule.server(row, member.sid).view)
    running = schedule.running(row)
    leaders = [sid for sid in running if isinstance(schedule.server(row, sid).zab, Leader)]
    for sid in lab.sids:
        elections.isolate(sid)
    initial_votes = {member.sid: vote_of(member.sid, member.durable) for member in schedule.setup.members}
    first: list[tuple[Sid, Sid]] = []
    for leader in leaders:
        # A star around the leader, without the servers that have a better vote: no other server can be elected.
        best = initial_votes[leader]
        first += [(sid, leader) for sid in schedule.group(row, leader) if initial_votes[sid] < best]
    for pair in first:
        elections.join(frozenset(pair))
    lab.network.close(EVERY_TYPE - {PacketType.ACKEPOCH})
    for sid in running:
        lab.start(sid)
    late = lambda: [f"server {sid} has not" for sid, leader in first if not _has_promised(lab, sid, leader)]  # noqa: E731
    wait_for(late, SECONDS_TO_START, "not all first followers have acknowledged an epoch")
    lab.network.close(EVERY_TYPE)
    for link in lab.network.links:
        link.flush()
    for leader in leaders:
        wait_for(partial(_is_leader, lab, leader), SECONDS_TO_START, f"server {leader} does not lead")
        elections.join(schedule.group(row, leader))
        _write_history(schedule, lab, leader)
    started = lambda: compare.roles(row) + compare.logs(row)  # noqa: E731
    wait_for(started, SECONDS_TO_START, "the servers do not reach the initial state")
    sessions = {sid: lab.connect(sid) for sid in _written_at(schedule) if lab.role(sid)}
    transparent = UNMODELLED | (DISCOVERY if schedule.setup.discovery_in_one_step else frozenset())
    lab.network.close(frozenset(int(each) for each in transparent))
    for gate in lab.gates.values():
        gate.close()
    return sessions


def _has_promised(lab: Lab, sid: Sid, leader: Sid) -> bool:
    """Whether the ACKEPOCH of a server waits at the proxy.

    A follower whose ACKEPOCH comes after the leader has begun to serve would get a SNAP at the zxid of the new epoch.
    """
    link = lab.network.link(sid, leader)
    return link is not None and any(packet.type == PacketType.ACKEPOCH for packet in link.waiting(Way.UP))


def _write_history(schedule: Schedule, lab: Lab, leader: Sid) -> None:
    """Write the transactions that the initial state has and the initial disks do not have."""
    member = next(member for member in schedule.setup.members if member.sid == leader)
    session = lab.connect(leader)
    for txn in tuple(schedule.server(schedule.initial, leader).durable.txns)[len(member.durable.txns) :]:
        lab.create(session, path_of(txn.zxid, txn.value))
    session.drop()


def _is_leader(lab: Lab, sid: Sid) -> list[str]:
    role = lab.role(sid)
    return [] if role == "leader" else [f"it is {role or 'not serving'}"]


def _written_at(schedule: Schedule) -> tuple[Sid, ...]:
    writes = (step.move.arguments for step in schedule.steps if step.move.action == Action.CLIENT_WRITE)
    return tuple(dict.fromkeys(sid for sid, _ in writes))
