"""Run a node that exits as leader before it sends the COMMIT of one transaction: `dying_leader.py WORD ARGUMENT...`.

The transaction is the one whose record contains WORD; the arguments are those of `python -m refimpl`.
"""

import os
import sys

from refimpl.__main__ import main
from refimpl.peers.quorum_port import QuorumSockets
from refimpl.wire.txn import encode_txn
from spec.effects import Message
from spec.zab.packets import Commit, Proposal

marked: set[int] = set()
sent = QuorumSockets.send


def send(port: QuorumSockets, peer: int, packet: Message) -> None:
    """Send a packet; exit instead if it is that COMMIT."""
    if isinstance(packet, Proposal) and sys.argv[1].encode() in encode_txn(packet.txn.zxid, packet.txn.value):
        marked.add(packet.txn.zxid)
    if isinstance(packet, Commit) and packet.zxid in marked:
        os._exit(9)
    sent(port, peer, packet)


if __name__ == "__main__":
    QuorumSockets.send = send  # type: ignore[method-assign]
    sys.exit(main(sys.argv[2:]))
