"""The end of a schedule on real servers: everything recovers, and each write is looked up at each server.

The operator of a roll-out completes the plan: every server runs with its last planned file in the end.
"""

import time
from functools import partial

from harness.processes import ServerError
from harness.reproduce.lab import POLL_SECONDS, Lab, wait_for
from harness.reproduce.result import Reproduction
from harness.reproduce.schedule import Schedule
from spec.quorum import Sid
from spec.zab.state import Leader, logged_and_queued

SECONDS_TO_RECOVER = 90.0
SECONDS_TO_SETTLE = 30.0


def recover(schedule: Schedule, lab: Lab, result: Reproduction) -> None:
    """Open everything, start every server, and look for each write at each server, after the executed steps.

    Raises HarnessError, ServerError or OSError.
    """
    result.acknowledged = {write.path: write.sid for write in lab.writes.values() if write.error == 0}
    result.committed = tuple(
        write.path for number, write in lab.writes.items() if is_committed(schedule, number, len(result.steps))
    )
    lab.network.open()
    for gate in lab.gates.values():
        gate.open()
    for threads in lab.threads.values():
        threads.open()
    for sid in lab.sids:
        lab.stop_stall(sid)
    _complete_plan(schedule, lab, len(result.steps))
    everyone = lambda: [serve for sid in lab.sids for serve in _serves(lab, sid)]  # noqa: E731
    wait_for(everyone, SECONDS_TO_RECOVER, "the ensemble does not recover")
    _let_settle(lab)
    for write in lab.writes.values():
        result.present[write.path] = tuple(sid for sid in lab.sids if _has_path(lab, sid, write.path))
    if lab.recorder is not None:
        for sid in lab.sids:
            lab.recorder.looked(sid, [path for path in result.acknowledged if sid not in result.present[path]])


def _complete_plan(schedule: Schedule, lab: Lab, executed: int) -> None:
    """Start every stopped server with its last planned file, then restart each that runs with an earlier one."""
    row = schedule.steps[executed - 1].after if executed else schedule.initial
    planned = {action.sid: action.file.view for action in schedule.setup.process_actions if action.file is not None}
    stopped = [sid for sid in lab.sids if not lab.alive(sid)]
    outdated = [sid for sid, view in planned.items() if schedule.server(row, sid).view != view]
    for sid in dict.fromkeys((*stopped, *outdated)):
        if sid in planned:
            lab.kill(sid)
            lab.configure(sid, planned[sid])
        lab.start(sid)
        if sid not in stopped:
            wait_for(partial(_serves, lab, sid), SECONDS_TO_RECOVER, f"server {sid} does not return with its new file")


def _let_settle(lab: Lab) -> None:
    """Wait until one server leads, and all others have joined it.

    An old leader that receives a late packet may serve until its next tick. Views that differ may keep two leaders.
    """
    deadline = time.monotonic() + SECONDS_TO_SETTLE
    while time.monotonic() < deadline:
        roles = [lab.role(sid) for sid in lab.sids]
        if roles.count("leader") == 1 and None not in roles:
            return
        time.sleep(POLL_SECONDS)


def _has_path(lab: Lab, sid: Sid, path: str) -> bool:
    """Whether a server has a znode; asked again if the server ends the connection, to change its leader."""
    deadline = time.monotonic() + SECONDS_TO_SETTLE
    while True:
        try:
            return lab.exists(sid, path)
        except (ServerError, OSError):
            if time.monotonic() > deadline:
                raise
            time.sleep(POLL_SECONDS)


def _serves(lab: Lab, sid: Sid) -> list[str]:
    return [] if lab.role(sid) else [f"server {sid} does not serve"]


def is_committed(schedule: Schedule, number: int, executed: int) -> bool:
    """Whether the model has committed a write within the executed steps: a leader has it, and has committed it."""
    zxid = schedule.zxids.get(number)
    if zxid is None:
        return False
    for step in schedule.steps[:executed]:
        for sid in schedule.setup.sids:
            server = schedule.server(step.after, sid)
            part = server.zab
            if not isinstance(part, Leader) or not part.serves or part.committed < zxid:
                continue
            if any(txn.zxid == zxid for txn in logged_and_queued(server.durable, part.queue)):
                return True
    return False
