"""Which clauses a condition needs, where z3 searches too long with all of them.

The clauses lead from a server to its reign, from this to the reign that it began from, and so on. With all clauses z3
may follow that chain without an end. A hint is a proof outline: the hypotheses that a person would use. A wrong hint
makes a condition fail; it cannot make one succeed, since a subset of the hypotheses proves less.
"""

from __future__ import annotations

_ROLLOUT = "stages barrier older_below_barrier newest_above_barrier none_beyond served_by_quorum zero_reign"
_GROWTH = "promised_runs acked_runs served_runs grown_above_barrier barrier_runs"

HINTS: dict[tuple[str, str], str] = {
    # The reign is not behind the server, so it began with the transactions of the server, by the source of its log.
    ("promise", "promised_is_known"): (
        "acked_known acked_stays candidate_has_initial dead_if_missing initial_is_prefix epochs_ordered log_is_prefix "
        "one_leader history_initial_or_own promised_is_known dead_below history_established promise_accepts "
        "candidate_epochs"
    ),
    # The server of the reign knows its own log.
    ("begin", "promised_is_known"): "acked_known acked_stays promised_is_known promise_accepts epochs_ordered",
    # A quorum that lacks t meets the quorum that establishes: the common server has promised without t.
    ("establish", "dead_is_blocked"): (
        "established_begun dead_is_blocked promised_is_known promise_accepts dead_if_missing served_committed "
        f"committed_acked established_by_quorum one_leader old_are_over late_is_too_late {_ROLLOUT} {_GROWTH}"
    ),
    # Two quorums of one epoch meet: the common server has promised twice.
    ("establish", "one_leader"): (
        "established_begun established_by_quorum established_by_promises promise_once one_leader promise_accepts "
        f"old_are_over late_is_too_late {_ROLLOUT} {_GROWTH}"
    ),
    # No later reign than the leader that all follow is established, so nothing is dead for it.
    ("raise_high", "dead_is_blocked"): (
        "dead_is_blocked newest_reign dead_by_newest established_by_promises established_by_quorum promise_accepts "
        f"one_leader {_ROLLOUT} {_GROWTH}"
    ),
    ("raise_high", "older_below_barrier"): (
        f"newest_reign established_by_promises established_by_quorum promise_accepts one_leader {_ROLLOUT} {_GROWTH}"
    ),
    # The leader is of the newest stage, and so has not grown: its quorum runs since before the next stage.
    ("raise_high", "barrier_runs"): "served_runs grown_above_barrier stages",
    # The transaction is new, and of the only reign of its epoch.
    ("propose", "one_txn_a_zxid"): "one_txn_a_zxid history_origin history_bound history_established one_leader",
    # A committed transaction is not dead, so no later reign lacks it.
    ("theorems", "leader_completeness"): (
        "dead_if_missing dead_is_blocked committed_acked committed_by_quorum history_established acked_runs"
    ),
    ("theorems", "agreement"): "one_txn_a_zxid committed_by_quorum",
    ("theorems", "total_order"): (
        "leader_completeness committed_by_quorum log_is_prefix log_matching history_initial_or_own one_leader "
        "history_established"
    ),
    ("theorems", "prefixes_agree"): "total_order agreement",
    ("theorems", "durability"): (
        "committed_acked committed_by_quorum acked_stays dead_is_blocked history_established acked_runs"
    ),
    ("theorems", "durability_in_later_epochs"): (
        "leader_completeness epochs_ordered entered_has_initial dead_below dead_is_blocked committed_acked "
        "committed_by_quorum history_established acked_runs"
    ),
}
"""The names of the hypotheses, by the action (or "theorems") and the clause that is to be proved."""


def needed(place: str, goal: str) -> frozenset[str] | None:
    """The clauses that a condition needs; None for all of them."""
    names = HINTS.get((place, goal))
    return None if names is None else frozenset(names.split())
