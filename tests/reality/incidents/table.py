"""The table of incidents: a row is a name, a release, and the function that provokes the incident on real servers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.reality.incidents import files_and_disks as simple
from tests.reality.incidents import losses, reconfigured
from tests.reality.incidents.scene import Scene, Truth

NEW, STABLE, OLD = "3.9.5", "3.8.6", "3.4.14"


@dataclass(frozen=True)
class Incident:
    """A row of the table. `provoke` leaves the servers of its scene as the incident has them."""

    name: str
    release: str
    provoke: Callable[[Scene], Truth]


INCIDENTS = (
    Incident("wrong-myid-twice", NEW, simple.twice_one_myid),
    Incident("wrong-myid-unknown", STABLE, simple.unknown_myid),
    Incident("swapped-ports", NEW, simple.swapped_ports),
    Incident("old-file", STABLE, simple.old_file),
    Incident("epoch-missing-accepted", NEW, simple.without_accepted_epoch),
    Incident("epoch-missing-current", OLD, simple.without_current_epoch),
    Incident("epochs-contradict", STABLE, simple.epochs_contradict),
    Incident("epochs-contradict-older", NEW, simple.older_current_epoch),
    Incident("log-missing", NEW, simple.log_missing),
    Incident("log-gap", NEW, simple.log_gap),
    Incident("log-gap-3.4", OLD, simple.log_gap),
    Incident("damaged-log", STABLE, simple.damaged_log),
    Incident("damaged-log-3.4", OLD, simple.damaged_log),
    Incident("foreign-disk", NEW, simple.foreign_disk),
    Incident("unresolvable-host", STABLE, simple.unresolvable_host),
    Incident("no-quorum", NEW, simple.no_quorum),
    Incident("majority-lost", STABLE, simple.majority_lost),
    Incident("tls-mixed", NEW, simple.tls_mixed),
    Incident("ids-renamed", STABLE, simple.ids_renamed),
    Incident("full-disk", NEW, simple.full_disk),
    Incident("stale-next", NEW, reconfigured.stale_next),
    Incident("stale-next-read", STABLE, reconfigured.stale_next_read),
    Incident("reconfig-mixed", STABLE, reconfigured.reconfig_mixed),
    Incident("two-leaders", NEW, simple.two_leaders),
    Incident("restore-undone", NEW, losses.restore_undone),
    Incident("pending-view", NEW, reconfigured.pending_view),
    Incident("promotion-stalled", STABLE, reconfigured.promotion_stalled),
    Incident("acks-survive-truncation", NEW, losses.acks_survive_truncation),
    Incident("sync-from-applied", NEW, losses.sync_from_applied),
    Incident("trunc-after-snap", NEW, losses.trunc_after_snap),
    Incident("observer-becomes-voter", NEW, losses.observer_becomes_voter),
)
