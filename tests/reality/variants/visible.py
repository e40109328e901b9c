"""The differences of two states of a model, as far as the driver can see them on real servers.

The rules are those of `harness.reproduce.comparison`: a server may be ahead of the model where the model lets a step be
late. So a state in which more packets are in flight looks like one with a part of them.
"""

from collections.abc import Iterator

from checker.engine.model import Row
from harness.reproduce.comparison import role_of, seen_view, sees_early, text_of_view
from harness.reproduce.schedule import Schedule, applied_zxid, pending_appends, wire_form, written_epoch
from spec.quorum import Sid


def differences(schedule: Schedule, expected: Row, actual: Row) -> Iterator[str]:
    """What the driver sees if it expects the first state, and the servers are in the second one."""
    for sid in schedule.setup.sids:
        yield from _of_server(schedule, sid, expected, actual)
    for learner, leader in schedule.setup.quorum_pairs:
        yield from _of_connection(schedule, (learner, leader), expected, actual)


def _of_server(schedule: Schedule, sid: Sid, expected: Row, actual: Row) -> Iterator[str]:
    one, other = schedule.server(expected, sid), schedule.server(actual, sid)
    early = role_of(other, sid) is None and schedule.leads_without_quorum(expected, sid)
    if role_of(one, sid) != role_of(other, sid) and not early:
        yield f"the role of server {sid}"
    if text_of_view(one.view) != text_of_view(other.view):
        yield f"the configuration of server {sid}"
    if seen_view(one) != seen_view(other) and not sees_early(one) and not sees_early(other):
        yield f"the configuration that server {sid} has seen last"
    if one.durable.snapshot == other.durable.snapshot and one.durable.records != other.durable.records:
        yield f"the log of server {sid}"
    awaited = pending_appends(one)[:1]
    if awaited and awaited != pending_appends(other)[:1]:
        yield f"the next write of server {sid}"
    if written_epoch(one) not in (None, other.durable.current_epoch):
        yield f"the epoch of server {sid}"
    if one.durable.dirty not in (None, other.durable.dirty):
        yield f"the snapshot of server {sid}"
    late = one.zab is not None and one.zab.commits
    if late and applied_zxid(one) != applied_zxid(other):
        yield f"the applied zxid of server {sid}"


def _of_connection(schedule: Schedule, pair: tuple[Sid, Sid], expected: Row, actual: Row) -> Iterator[str]:
    one, other = schedule.connection(expected, *pair), schedule.connection(actual, *pair)
    if one is None:
        return
    for sid, packets in ((one.learner, one.up), (one.leader, one.down)):
        sent = () if other is None or other.learner != one.learner else (other.up if sid == one.learner else other.down)
        forms = [*map(wire_form, packets)]
        if forms != [*map(wire_form, sent)][: len(forms)]:
            yield f"the packets of server {sid} to server {sum(pair) - sid}"
    if other is not None:
        for sid, holds, still in (
            (one.learner, one.learner_holds, other.learner_holds),
            (one.leader, one.leader_holds, other.leader_holds),
        ):
            if not holds and still:
                yield f"the end of the connection by server {sid}"
