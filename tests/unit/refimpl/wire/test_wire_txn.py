"""Transactions: the log of a real server, and the formats of old servers.

golden/wire/txnlog.hex describes its origin: the requests of kazoo, zkCli.sh and the Java client of test_wire_client.
"""

import struct
from pathlib import Path

import pytest

from refimpl.jute import JuteError, encode
from refimpl.wire.txn import TxnEncoder, decode_txn, encode_txn
from spec.tree.data import OPEN_ACL_UNSAFE, Record
from spec.tree.replies import Code
from spec.tree.txns import (
    Change,
    CheckVersionTxn,
    CloseSessionTxn,
    Create2Txn,
    CreateContainerTxn,
    CreateSessionTxn,
    CreateTtlTxn,
    CreateTxn,
    DeleteContainerTxn,
    DeleteTxn,
    ErrorTxn,
    MultiTxn,
    SetAclTxn,
    SetDataTxn,
)

LOG = [
    bytes.fromhex(line)
    for line in (Path(__file__).parents[2] / "golden" / "wire" / "txnlog.hex").read_text().splitlines()
    if line[0] != "#"
]
OPEN = OPEN_ACL_UNSAFE
EPOCH = 1 << 32
FIRST = 0x100001D2B9E0000
"""The session of kazoo, opened at server 1."""

LOGGED: dict[int, Record] = {
    1: CreateSessionTxn(9000),
    2: CreateTxn("/a", b"data", OPEN, False, 1),
    3: CreateTxn("/a/eph", b"e", OPEN, True, 1),
    4: CreateTxn("/a/seq-0000000001", b"", OPEN, False, 2),
    5: Create2Txn("/a/st", b"x", OPEN, False, 3),
    7: SetDataTxn("/a", b"new", 1),
    9: SetAclTxn("/a/st", OPEN, 1),
    11: CreateTxn("/ä中", b"utf", OPEN, False, 3),
    12: MultiTxn(
        (
            CreateTxn("/m", b"1", OPEN, False, 4),
            SetDataTxn("/m", b"2", 1),
            CheckVersionTxn("/m", 2),
            DeleteTxn("/m"),
            CreateTxn("/m2", b"x", OPEN, False, 5),
        )
    ),
    14: ErrorTxn(Code.NODE_EXISTS),
    15: ErrorTxn(Code.NO_NODE),
    16: ErrorTxn(Code.BAD_VERSION),
    17: DeleteTxn("/m2"),
    20: CloseSessionTxn(()),
    21: CloseSessionTxn(("/a/eph",)),
    23: CreateContainerTxn("/cont", b"x", OPEN, 6),
    25: CreateTtlTxn("/ttl", b"t", OPEN, 7, 60000),
    28: DeleteContainerTxn("/cont"),
    36: CreateTxn("/j", None, OPEN, False, 9),
}
"""The requests of the clients, by counter. A parent's cversion is the number of successful creates below it."""


def header(number: int) -> bytes:
    return struct.pack(">qiqqi", 7, 8, 9, 10, number)


def test_every_entry_of_a_real_log_is_read_and_written_again() -> None:
    for entry in LOG:
        zxid, change = decode_txn(entry)

        assert encode_txn(zxid, change) == entry
        # A failed request does not change the tree, and so has no digest.
        assert (change.digest is None) == isinstance(change.record, ErrorTxn)


def test_the_zxids_of_a_real_log_follow_each_other() -> None:
    assert [decode_txn(entry)[0] for entry in LOG] == [EPOCH + counter for counter in range(1, len(LOG) + 1)]


@pytest.mark.parametrize("counter", LOGGED)
def test_an_entry_says_what_the_client_asked_for(counter: int) -> None:
    _, change = decode_txn(LOG[counter - 1])

    assert change.record == LOGGED[counter]


def test_an_entry_names_the_session_and_the_clients_number() -> None:
    _, change = decode_txn(LOG[6])

    assert (change.session, change.cxid) == (FIRST, 6)


def test_a_multi_that_failed_keeps_what_came_before_its_error() -> None:
    _, change = decode_txn(LOG[12])

    assert change.record == MultiTxn(
        (CreateTxn("/n", b"1", OPEN, False, 6), ErrorTxn(Code.NO_NODE), ErrorTxn(Code.RUNTIME_INCONSISTENCY))
    )


def test_a_create_of_an_old_log_has_no_parents_cversion() -> None:
    old = header(1) + encode(CreateTxn("/a", b"", OPEN, True, 0))[:-4]

    assert decode_txn(old) == (9, Change(7, 8, 10, CreateTxn("/a", b"", OPEN, True, -1)))


@pytest.mark.parametrize("lost", [1, 2, 3])
def test_a_create_that_was_cut_is_not_taken_for_an_old_one(lost: int) -> None:
    with pytest.raises(JuteError, match=r"CreateTxn\.parent_cversion"):
        decode_txn(header(1) + encode(CreateTxn("/a", b"", OPEN, True, 0))[:-lost])


@pytest.mark.parametrize("digest", [b"", b"\0\0\0\2" + b"\x7e" * 8], ids=["without digest", "with digest"])
def test_a_close_session_of_an_old_log_has_no_list(digest: bytes) -> None:
    assert decode_txn(header(-11) + digest) == (9, Change(7, 8, 10, CloseSessionTxn(())))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        pytest.param(b"", "TxnHeader at byte 0: 0 bytes, where it takes 32", id="nothing"),
        pytest.param(header(77), "TxnHeader.type at byte 28: unknown type 77; known are", id="unknown type"),
        pytest.param(header(16), "ReconfigTxn.path at byte 32", id="a reconfiguration cut short"),
        pytest.param(header(13), "TxnHeader.type at byte 28: unknown type 13", id="a check of its own"),
        pytest.param(header(2) + b"\0\0\0\5/", "DeleteTxn.path at byte 32: length 5", id="cut short"),
        pytest.param(header(2) + b"\0\0\0\1/??", "DeleteTxn at byte 37: 2 bytes are left after it", id="too long"),
        pytest.param(header(-11) + b"\0\0\0\1", "CloseSessionTxn.paths_to_delete at byte 32", id="a list cut short"),
        pytest.param(header(1) + b"\0\0\0\1/", "CreateTxn.data at byte 37", id="a create cut short"),
    ],
)
def test_what_is_no_transaction_is_refused_with_the_place(data: bytes, said: str) -> None:
    with pytest.raises(JuteError, match=f"^{said}"):
        decode_txn(data)


def test_a_check_of_its_own_is_never_written() -> None:
    with pytest.raises(JuteError, match="CheckVersionTxn is not a complete transaction"):
        encode_txn(1, Change(0, 0, 0, CheckVersionTxn("/", 1)))


def test_a_header_beyond_64_bits_is_refused() -> None:
    with pytest.raises(JuteError, match="TxnHeader: session"):
        encode_txn(1 << 64, Change(0, 0, 0, DeleteTxn("/")))


class TestOneEncoding:
    """A leader sends a transaction to every learner and logs it: the same bytes, encoded once."""

    def test_the_log_gets_the_bytes_that_the_learners_got(self) -> None:
        encoder, change = TxnEncoder(), Change(1, 2, 3, DeleteTxn("/a"))
        sent = encoder.encoded(7, change)

        assert sent == encode_txn(7, change)
        assert encoder.encoded(7, change) is sent
        assert encoder.taken(7, change) is sent

    def test_another_transaction_with_this_zxid_is_encoded_anew(self) -> None:
        """After a new leader, a zxid may belong to another transaction."""
        encoder = TxnEncoder()
        encoder.encoded(7, Change(1, 2, 3, DeleteTxn("/a")))
        other = Change(1, 2, 3, DeleteTxn("/b"))

        assert encoder.taken(7, other) == encode_txn(7, other)

    def test_the_bytes_that_are_kept_are_bounded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(TxnEncoder, "KEPT", 1000)
        encoder = TxnEncoder()
        first = Change(1, 2, 3, SetDataTxn("/a", b"x" * 2000, 1))
        sent = encoder.encoded(1, first)
        encoder.encoded(2, Change(1, 2, 3, DeleteTxn("/a")))

        assert encoder.taken(1, first) is not sent
