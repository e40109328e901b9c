"""The command `python -m benchmarks growth`: many commits while a learner is brought up to date, in growing numbers.

Rules: the step functions alone are measured, in one process, without sockets and disks, as a node calls them: packets
in batches of `TOGETHER`. Time that is proportional to the number of commits is a constant time per commit.
"""

import argparse
import time
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from refimpl.disk.txn_buffer import TxnBuffer
from spec import server as spec_server
from spec.durable import Durable
from spec.election.state import Election, ElectionRules
from spec.election.vote import ServerState, Vote
from spec.quorum import majority_view
from spec.server import Event, Server
from spec.txn import Txn, make_zxid
from spec.zab.events import ClientWrite, Receive, Synced
from spec.zab.packets import Ack, Commit, Proposal, UpToDate
from spec.zab.state import Handler, Leader, LeaderPhase, Learner, LearnerPhase, Stage, ZabRules

SIZES = (20_000, 40_000, 80_000)
TOGETHER = 50
REPEATS = 3
VIEW = majority_view([1, 2, 3])
RULES, ZAB = ElectionRules(), ZabRules(hold_commits=True, observers_log_first=True)


def handle(server: Server, events: Sequence[Event], together: int = TOGETHER) -> Server:
    """The server after these events, handled as a node does. Raises AssertionError for an impossible one."""
    for start in range(0, len(events), together):
        group = events[start : start + together]
        while group:
            steps = spec_server.step_all(server, group, RULES, ZAB)
            assert steps is not None, group[0]
            server, group = steps.state, group[len(steps.effects) :]
    return server


def leading(count: int) -> None:
    """A leader and one follower commit while another follower has not acknowledged NEWLEADER, which then does."""
    vote = Vote(3, 0, 1)
    handlers = (Handler(1, Stage.SERVING), Handler(2, Stage.SYNCING))
    part = Leader(LeaderPhase.BROADCAST, 1, (), handlers, committed=make_zxid(1))
    server = Server(3, VIEW, Durable(1, 1, log=TxnBuffer()), Election(ServerState.LEADING, 1, vote), part)
    zxid = make_zxid(1)
    for _ in range(count // TOGETHER):
        zxids = range(zxid + 1, zxid + 1 + TOGETHER)
        acks = [Receive(1, Ack(acknowledged)) for acknowledged in zxids]
        server = handle(server, [ClientWrite("w") for _ in zxids])
        server = handle(server, [Synced()] * TOGETHER)
        server = handle(server, acks)
        zxid += TOGETHER
        log = server.durable.log
        assert isinstance(log, TxnBuffer)
        server = replace(server, durable=replace(server.durable, log=log.trimmed(zxid)))
    ended = spec_server.step(server, Receive(2, Ack(make_zxid(1))), RULES, ZAB)
    assert ended is not None and len(ended.effects) == count + 1


def following(count: int) -> None:
    """A follower gets proposals and commits between NEWLEADER and UPTODATE, and then UPTODATE."""
    vote = Vote(3, 0, 1)
    part = Learner(3, LearnerPhase.SYNCED, 1)
    server = Server(1, VIEW, Durable(1, 1, log=TxnBuffer()), Election(ServerState.FOLLOWING, 1, vote), part)
    events: list[Event] = []
    for zxid in range(make_zxid(1) + 1, make_zxid(1) + 1 + count):
        events += (Receive(3, Proposal(Txn(zxid, "w"))), Receive(3, Commit(zxid)))
    server = handle(server, events)
    ended = spec_server.step(server, Receive(3, UpToDate()), RULES, ZAB)
    assert ended is not None
    server = handle(ended.state, [Synced()] * count, count)  # the disk reports one group
    assert server.durable.last_zxid == make_zxid(1) + count


def seconds(work: Callable[[int], None], count: int) -> float:
    """The shortest time of a few, in seconds of this thread."""
    times = []
    for _ in range(REPEATS):
        start = time.thread_time()
        work(count)
        times.append(time.thread_time() - start)
    return min(times)


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks growth", description=(__doc__ or "").splitlines()[0])
    parser.parse_args(argv)
    print(f"{'part':<10} {'commits':>8} {'seconds':>8} {'us a commit':>12} {'to the first':>13}")
    for work in (leading, following):
        first = 0.0
        for count in SIZES:
            cost = seconds(work, count) / count * 1e6
            first = first or cost
            print(f"{work.__name__:<10} {count:>8,} {cost * count / 1e6:>8.2f} {cost:>12.1f} {cost / first:>13.2f}")
    return 0
