"""A change of the members of an ensemble, as a client requests it by `reconfig`.

Rules of this module:

- A change is incremental: servers that join or change their role, and servers that leave. Only a majority system can be
  changed in this way.
- The leaving servers are removed first, so a server that is in both sets stays, with its new role.
- A view with a change has another version, which the leader chooses: the zxid of its proposal.

Source: `PrepRequestProcessor.pRequest2Txn`, case reconfig; `ReconfigRequest`.
"""

from typing import Any

import msgspec

from spec.quorum.systems import Majority, Sid
from spec.quorum.view import View


class MembershipChange(msgspec.Struct, frozen=True):
    """The servers that become voters, those that become observers, and those that leave."""

    voters: frozenset[Sid] = frozenset()
    observers: frozenset[Sid] = frozenset()
    leaving: frozenset[Sid] = frozenset()


class Reconfiguration(msgspec.Struct, frozen=True):
    """The value of a transaction that changes the configuration: the new view, and what the tree of a node applies.

    In the checker there is no tree, and `change` is None.
    """

    view: View
    change: Any = None


def change_of(value: Any) -> Any:
    """What the tree applies of the value of a transaction: all of it, except for the view of a reconfiguration."""
    return value.change if type(value) is Reconfiguration else value


def changed(view: View, change: MembershipChange, version: int) -> View | None:
    """The view after a change, with this version; None if the view does not count plain majorities.

    Addresses are kept, because a change of an address is not modelled.
    """
    if not isinstance(view.quorums, Majority):
        return None
    joining = change.voters | change.observers
    voters = (view.voters - change.leaving - joining) | change.voters
    observers = (view.observers - change.leaving - joining) | (change.observers - change.voters)
    return View(Majority(voters), observers, version, view.addresses)


def same_members(one: View, other: View) -> bool:
    """Whether two configurations differ in their version only (`QuorumVerifier.equals`)."""
    return (one.quorums, one.observers) == (other.quorums, other.observers)
