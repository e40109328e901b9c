"""Jute: records compared with bytes that were written by hand from zookeeper.jute, and errors for invalid bytes."""

import pytest

from refimpl.jute import JuteError, decode, decode_whole, encode
from spec.tree.data import OPEN_ACL_UNSAFE, Acl, Id, Record, Stat
from spec.tree.replies import (
    ChildrenReply,
    Create2Reply,
    DataReply,
    ErrorReply,
    MultiReply,
    OperationResult,
    PathReply,
    WatcherEvent,
)
from spec.tree.requests import (
    AddWatch,
    Check,
    Create,
    CreateTtl,
    Delete,
    DeleteContainer,
    Exists,
    GetChildren,
    GetData,
    GetEphemerals,
    Multi,
    MultiRead,
    Ping,
    Reconfig,
    SetAuth,
    SetWatches,
    Sync,
)
from spec.tree.txns import CreateTxn, DeleteTxn, ErrorTxn, MultiTxn, SetAclTxn

NULL = "ffffffff"
WORLD = "0000001f 00000005 776f726c64 00000006 616e796f6e65"
STAT = Stat(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
STAT_BYTES = (
    "0000000000000001 0000000000000002 0000000000000003 0000000000000004 00000005 00000006 00000007"
    "0000000000000008 00000009 0000000a 000000000000000b"
)
CLOSING = "ffffffff 01 ffffffff"

BY_HAND: dict[str, tuple[Record, str]] = {
    "no fields": (Ping(), ""),
    "a string and a truth value": (GetData("/a", True), "00000002 2f61 01"),
    "text beyond ASCII": (Exists("/ä", False), "00000003 2fc3a4 00"),
    "a negative number": (Delete("/a", -1), "00000002 2f61 ffffffff"),
    "numbers before a string": (WatcherEvent(3, 3, "/"), "00000003 00000003 00000001 2f"),
    "records in a vector": (
        Create("/", b"d", OPEN_ACL_UNSAFE, 1),
        f"00000001 2f 00000001 64 00000001 {WORLD} 00000001",
    ),
    "a null buffer": (Create("/", None, (), 0), f"00000001 2f {NULL} 00000000 00000000"),
    "an empty buffer": (Create("/", b"", (), 0), "00000001 2f 00000000 00000000 00000000"),
    "a long at the end": (CreateTtl("/", b"", (), 5, 9), "00000001 2f 00000000 00000000 00000005 0000000000000009"),
    "vectors of strings": (
        SetWatches(258, ("/a",), (), ("/", "/b")),
        "0000000000000102 00000001 00000002 2f61 00000000 00000002 00000001 2f 00000002 2f62",
    ),
    "a record within": (DataReply(b"x", STAT), f"00000001 78 {STAT_BYTES}"),
    "a record after a string": (Create2Reply("/", STAT), f"00000001 2f {STAT_BYTES}"),
    "the bare path of deleteContainer": (DeleteContainer("/ä"), "2fc3a4"),
    "a transaction": (CreateTxn("/", b"", (), True, 7), "00000001 2f 00000000 00000000 01 00000007"),
    "a multi": (
        Multi((Delete("/a", 3), Check("/b", 4))),
        f"00000002 00 ffffffff 00000002 2f61 00000003 0000000d 00 ffffffff 00000002 2f62 00000004 {CLOSING}",
    ),
    "a multi without operations": (Multi(()), CLOSING),
    "a multiRead": (
        MultiRead((GetData("/a", False), GetChildren("/", False))),
        f"00000004 00 ffffffff 00000002 2f61 00 00000008 00 ffffffff 00000001 2f 00 {CLOSING}",
    ),
    "answers to a multi": (
        MultiReply((OperationResult(1, PathReply("/a")), OperationResult(2, None))),
        f"00000001 00 00000000 00000002 2f61 00000002 00 00000000 {CLOSING}",
    ),
    "errors of a multi": (
        MultiReply((OperationResult(-1, ErrorReply(0)), OperationResult(-1, ErrorReply(-101)))),
        f"ffffffff 00 00000000 00000000 ffffffff 00 ffffff9b ffffff9b {CLOSING}",
    ),
    "transactions of a multi": (
        MultiTxn((DeleteTxn("/a"), ErrorTxn(-2))),
        "00000002 00000002 00000006 00000002 2f61 ffffffff 00000004 fffffffe",
    ),
}


@pytest.mark.parametrize(("record", "text"), BY_HAND.values(), ids=BY_HAND)
def test_a_record_is_written_as_its_definition_says(record: Record, text: str) -> None:
    assert encode(record) == bytes.fromhex(text)


@pytest.mark.parametrize(("record", "text"), BY_HAND.values(), ids=BY_HAND)
def test_a_record_is_read_as_its_definition_says(record: Record, text: str) -> None:
    assert decode_whole(type(record), bytes.fromhex(text)) == record


def test_a_record_is_read_from_the_middle_and_its_end_is_told() -> None:
    assert decode(GetData, b"????\0\0\0\2/a\1????", 4) == (GetData("/a", True), 11)


def test_a_null_vector_is_an_empty_one() -> None:
    assert decode_whole(ChildrenReply, bytes.fromhex(NULL)) == ChildrenReply(())


def test_a_truth_value_is_anything_but_zero() -> None:
    assert decode_whole(Exists, b"\0\0\0\1/\x2a") == Exists("/", True)


@pytest.mark.parametrize(
    ("text", "record"),
    [
        pytest.param(NULL * 3 + "ffffffffffffffff", Reconfig("", "", "", -1), id="reconfig"),
        pytest.param(NULL, Sync(""), id="sync"),
        pytest.param(NULL, GetEphemerals(""), id="getEphemerals"),
        pytest.param("00000000" + NULL + NULL, SetAuth(0, "", None), id="auth"),
        pytest.param("0000001f" + NULL + NULL, Acl(31, Id("", "")), id="an ACL, to be refused as invalid"),
    ],
)
def test_a_null_string_is_taken_for_an_empty_one_where_a_server_was_seen_to_take_it(text: str, record: Record) -> None:
    assert decode_whole(type(record), bytes.fromhex(text)) == record


@pytest.mark.parametrize(
    ("cls", "text", "said"),
    [
        pytest.param(GetData, "", "GetData.path at byte 0: needs 4 bytes, and 0 are left", id="nothing"),
        pytest.param(GetData, "00000002", "GetData.path at byte 0: length 2, where 0 to 0", id="no content"),
        pytest.param(GetData, "fffffffb", "GetData.path at byte 0: length -5, where 0 to 0", id="negative length"),
        pytest.param(GetData, "7fffffff 2f", "GetData.path at byte 0: length 2147483647", id="huge length"),
        pytest.param(GetData, NULL + "00", "GetData.path at byte 0: length -1 (null)", id="null"),
        pytest.param(GetData, "00000002 2fff 00", "GetData.path at byte 5: invalid UTF-8", id="no UTF-8"),
        pytest.param(AddWatch, "00000001 2f 0000", "AddWatch.mode at byte 5: needs 4 bytes, and 2", id="short number"),
        pytest.param(Create, "00000001 2f fffffffe", "Create.data at byte 5: length -2", id="negative buffer"),
        pytest.param(ChildrenReply, "7fffffff", "ChildrenReply.children at byte 0: a vector of", id="huge vector"),
        pytest.param(ChildrenReply, "fffffffe", "ChildrenReply.children at byte 0: a vector of -2", id="below null"),
        pytest.param(
            Create,
            "00000001 2f 00000000 00000001 0000001f 00000009 78 ",
            "Create.acl at byte 9: a vector of 1 items, while 9 bytes",
            id="no room for an item",
        ),
        pytest.param(
            Create,
            "00000001 2f 00000000 00000001 0000001f 00000009 78 00000000",
            "Create.acl[0].id.scheme at byte 17: length 9",
            id="in a record in a vector",
        ),
        pytest.param(Multi, "00000002 00", "Multi at byte 0: a header of 9 bytes", id="multi without an end"),
        pytest.param(
            Multi, "0000000e 00 ffffffff", "Multi.operations[0] at byte 0: opcode 14 cannot", id="multi in a multi"
        ),
        pytest.param(
            Multi, "00000004 00 ffffffff", "Multi.operations[0] at byte 0: opcode 4 cannot", id="a read in a multi"
        ),
        pytest.param(
            MultiRead,
            "00000002 00 ffffffff",
            "MultiRead.operations[0] at byte 0: opcode 2",
            id="a write in a multiRead",
        ),
        pytest.param(
            Multi, "00000002 00 ffffffff 00000009", "Multi > Delete.path at byte 9: length 9", id="in an operation"
        ),
        pytest.param(
            MultiReply, "00000063 00 00000000", "MultiReply.results[0] at byte 0: type 99 is no", id="unknown answer"
        ),
        pytest.param(MultiTxn, "7fffffff", "MultiTxn.txns at byte 0: no count", id="huge multi"),
        pytest.param(
            MultiTxn, "00000001 0000000e 00000000", "MultiTxn.txns[0] at byte 4: type 14", id="nested MultiTxn"
        ),
        pytest.param(
            MultiTxn, "00000001 00000002 00000005", "MultiTxn.txns[0] at byte 4: a type and a", id="no record"
        ),
        pytest.param(
            MultiTxn,
            "00000001 00000002 00000004 00000009",
            "MultiTxn > DeleteTxn.path at byte 12: length 9",
            id="in a transaction",
        ),
        pytest.param(DeleteContainer, "2fff", "DeleteContainer.path at byte 1: invalid UTF-8", id="bare path"),
    ],
)
def test_bytes_that_are_no_record_are_refused_with_the_place(cls: type[Record], text: str, said: str) -> None:
    with pytest.raises(JuteError) as error:
        decode(cls, bytes.fromhex(text))

    assert str(error.value).startswith(said)


def test_what_is_left_is_an_error_where_nothing_may_be_left() -> None:
    with pytest.raises(JuteError, match="GetData at byte 6: 2 bytes are left after it"):
        decode_whole(GetData, b"\0\0\0\1/\0??")


@pytest.mark.parametrize(
    ("record", "said"),
    [
        pytest.param(Delete("/a", 2**31), r"Delete.version: 2147483648 does not fit the type int", id="beyond 32 bits"),
        pytest.param(Exists("/\ud800", False), r"Exists.path: .* does not fit the type ustring", id="half a character"),
        pytest.param(Create("/", 5, (), 0), r"Create.data: 5 does not fit the type buffer", id="a number for bytes"),  # type: ignore[arg-type]
        pytest.param(Exists(None, False), r"Exists.path: None does not fit the type ustring", id="no path"),  # type: ignore[arg-type]
        pytest.param(Create("/", b"", (Acl(2**40, Id("", "")),), 0), r"Create.acl\[0\].perms", id="in a vector"),
        pytest.param(Multi((GetData("/", False),)), "Multi.operations: GetData cannot", id="a read in a multi"),
        pytest.param(MultiTxn((MultiTxn(()),)), "MultiTxn.txns: MultiTxn cannot", id="a multi in a multi"),
        pytest.param(MultiTxn((SetAclTxn("/", (), 1),)), "MultiTxn.txns: SetAclTxn cannot", id="a setACL in a multi"),
        pytest.param(
            MultiReply((OperationResult(2, PathReply("/")),)), "PathReply does not answer opcode 2", id="wrong answer"
        ),
    ],
)
def test_what_the_wire_cannot_carry_is_refused_with_its_field(record: Record, said: str) -> None:
    with pytest.raises(JuteError, match=said):
        encode(record)


def test_decoding_copies_what_it_keeps() -> None:
    record, _ = decode(DataReply, b"\0\0\0\1x" + bytes(68))

    assert type(record.data) is bytes
