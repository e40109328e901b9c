"""A leader prepares a `reconfig` request: the transaction that changes the configuration, or the error for its client.

Rules of this module:

- The checks have ZooKeeper's order, since a client sees which of two faults is reported: enabled, session, an ensemble,
  no other reconfiguration, the version, the members, two voters, a synced quorum, and the ACL last.
- The transaction replaces the data of `/zookeeper/config`. The version of the configuration is the zxid of the
  proposal, so the transaction is prepared for one zxid.
- A refusal is a transaction too, `ErrorTxn`.

Source: `PrepRequestProcessor.pRequest2Txn` (case reconfig), `Leader.isQuorumSynced`.
"""

import msgspec

from spec.config.dynamic_files import ensemble_in, versioned_text
from spec.config.membership import BadMembersError, UnreadableMembersError, requested_view
from spec.election.state import Peer
from spec.quorum import Reconfiguration, View
from spec.text import excerpt
from spec.tree.checks import Asker, RefusedError, check_acl, check_session, existing
from spec.tree.data import Perms
from spec.tree.options import Options
from spec.tree.paths import CONFIG
from spec.tree.replies import Code
from spec.tree.requests import Reconfig, Request
from spec.tree.store import Store
from spec.tree.txns import Change, ErrorTxn, ReconfigTxn
from spec.zab.reconfiguration import Refused, refusal_of, refusal_of_all
from spec.zab.state import Leader

ANY_VERSION = -1
_CODES = {
    Refused.DISABLED: Code.RECONFIG_DISABLED,
    Refused.IN_PROGRESS: Code.RECONFIG_IN_PROGRESS,
    Refused.NOT_A_MAJORITY_SYSTEM: Code.BAD_ARGUMENTS,
    Refused.TOO_FEW_VOTERS: Code.BAD_ARGUMENTS,
    Refused.NO_SYNCED_QUORUM: Code.NEW_CONFIG_NO_QUORUM,
}


class Prepared(msgspec.Struct, frozen=True):
    """The value to propose, and the reason of a refusal for the log of the server: a short line, empty without one."""

    value: Change | Reconfiguration
    reason: str = ""


def prepare(
    peer: Peer, leader: Leader, tree: Store, request: Request, now: int, checked: Code, options: Options
) -> Prepared:
    """Prepare a request that reaches the leader at `now`, in milliseconds, for its next zxid.

    `checked` is the verdict of the session tracker, and `tree` shows all outstanding transactions.
    """
    asker = Asker(request.session, request.auth, checked, options, tree)
    assert isinstance(request.record, Reconfig)
    try:
        view = _view(peer, leader, tree, request.record, asker)
    except RefusedError as refused:
        return Prepared(
            Change(request.session, request.cxid, now, ErrorTxn(refused.code)),
            excerpt(refused.reason.partition("\n")[0]),
        )
    txn = ReconfigTxn(CONFIG, versioned_text(view).encode(), -1)
    return Prepared(Reconfiguration(view, Change(request.session, request.cxid, now, txn)))


def _view(peer: Peer, leader: Leader, tree: Store, asked: Reconfig, asker: Asker) -> View:
    of_all = refusal_of_all(peer)
    if of_all is Refused.DISABLED:
        raise RefusedError(_CODES[of_all])
    check_session(asker)
    _refuse_if(of_all)
    if asked.cur_config_id not in (ANY_VERSION, peer.view.version):
        raise RefusedError(Code.BAD_VERSION, f"the configuration has version {peer.view.version:x}")
    zxid = leader.last_proposed + 1
    try:
        view = requested_view(
            ensemble_in(peer.view), asked.joining_servers, asked.leaving_servers, asked.new_members, zxid
        )
    except BadMembersError as error:
        raise RefusedError(Code.BAD_ARGUMENTS, str(error)) from None
    except UnreadableMembersError as error:
        raise RefusedError(Code.MARSHALLING_ERROR, str(error)) from None
    _refuse_if(refusal_of(peer, leader, view))
    check_acl(existing(tree, CONFIG), Perms.WRITE, asker)
    return view


def _refuse_if(reason: Refused | None) -> None:
    if reason is not None:
        raise RefusedError(_CODES[reason], reason.value)
