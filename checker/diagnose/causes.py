"""The table of causes, and the order of those in one diagnosis.

Rules of this module, and of those with the functions:

- One function a cause. What loses data comes before what stops the service, and what explains others before what
  follows from it (`CauseKind`).
- A cause is named only where the evidence shows it. `Cause.evidence` has the sentences, with file, line or zxid.
- A step that removes data names what must be shown first; `doubt` decides whether a disk may be erased.
- A server with an empty disk starts when the others serve, whatever the cause is: with them it elects any of them.
- No step is a guess: where the evidence allows several, the cause says which input decides between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from checker.diagnose import disk_causes, file_causes, reconfiguration_causes, service_causes
from checker.diagnose.cause import Cause, CauseKind, NextStep, StepKind, serve_without
from checker.diagnose.doubt import Doubts
from checker.diagnose.situation import Situation, servers_text

CAUSES: tuple[Callable[[Situation, Doubts], Iterator[Cause]], ...] = (
    service_causes.two_leaders,
    file_causes.wrong_myid,
    file_causes.ids_renamed,
    file_causes.bad_files,
    file_causes.old_files,
    file_causes.swapped_ports,
    file_causes.mixed_tls,
    file_causes.mixed_reconfig,
    reconfiguration_causes.pending_views,
    reconfiguration_causes.next_files,
    disk_causes.damaged_disks,
    disk_causes.restored_data,
    disk_causes.logged_faults,
    disk_causes.uncut_records,
    disk_causes.differing_histories,
    disk_causes.leading_observers,
    disk_causes.endangered_writes,
    reconfiguration_causes.forgotten_next_files,
    disk_causes.lost_majority,
    file_causes.unresolvable_hosts,
    service_causes.no_quorum,
    disk_causes.truncated_logs,
)
RANKS = {kind: rank for rank, kind in enumerate(CauseKind)}


def causes(situation: Situation, doubts: Doubts) -> tuple[Cause, ...]:
    """All causes that the evidence shows, the one to mend first at the beginning."""
    causes_found = (_empty_disks_last(situation, cause) for find in CAUSES for cause in find(situation, doubts))
    return tuple(sorted(causes_found, key=lambda cause: RANKS[cause.kind]))


def _empty_disks_last(situation: Situation, cause: Cause) -> Cause:
    """The cause; the first of its steps that starts servers with empty disks comes after the start of the others."""
    view = situation.common_view
    if view is None or view.voters <= situation.empty or situation.has_quorum:
        return cause
    for place, step in enumerate(cause.steps):
        empty = tuple(sorted(situation.empty.intersection(step.servers)))
        if not empty or step.kind not in (StepKind.START, StepKind.RESTART):
            continue
        others = situation.newest_first(view.voters - situation.empty)
        if view.contains_quorum(frozenset(others)):
            return replace(cause, steps=(*cause.steps[:place], serve_without(others, empty), *cause.steps[place:]))
        sentence = f"Leave {servers_text(empty)} stopped: the disks are empty, and no quorum has data without them."
        return replace(cause, steps=(*cause.steps[:place], NextStep(StepKind.LOOK, empty, sentence)))
    return cause
