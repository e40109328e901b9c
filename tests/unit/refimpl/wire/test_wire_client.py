"""The client port: recorded requests of kazoo and the Java client to a real server, and its replies.

The recordings are in golden/wire/client-*.hex; their comments name the origin. The expected records are the commands
that the clients were given.
"""

import struct
from pathlib import Path
from typing import Any

import pytest

from refimpl.jute import JuteError, decode_whole, encode
from refimpl.wire.client import (
    BadRequestError,
    ConnectRequest,
    ConnectResponse,
    decode_connect_request,
    decode_request,
    encode_connect_response,
    encode_event,
    encode_reply,
)
from spec.tree import replies
from spec.tree.apply import Event, EventType
from spec.tree.data import OPEN_ACL_UNSAFE, Acl, Id, Record
from spec.tree.replies import Code
from spec.tree.requests import (
    AddWatch,
    Check,
    CloseSession,
    Create,
    Create2,
    CreateContainer,
    CreateTtl,
    Delete,
    Exists,
    GetAcl,
    GetAllChildrenNumber,
    GetChildren,
    GetChildren2,
    GetData,
    GetEphemerals,
    Multi,
    MultiRead,
    RemoveWatches,
    SetAcl,
    SetAuth,
    SetData,
    SetWatches,
    SetWatches2,
    Sync,
    WhoAmI,
)

GOLDEN = Path(__file__).parents[2] / "golden" / "wire"
OPEN = OPEN_ACL_UNSAFE
NO_PASSWD = bytes(16)
MOVED = 0x100001D2B9E0000

Conversation = tuple[list[bytes], list[bytes]]


def conversations(name: str) -> list[Conversation]:
    """Return, for each connection, the frames from the client and those from the server."""
    found: list[Conversation] = []
    for line in (GOLDEN / name).read_text().splitlines():
        if line == "# connection":
            found.append(([], []))
        elif line[0] in "<>":
            found[-1][line[0] == "<"].append(bytes.fromhex(line[2:]))
    return found


KAZOO, KAZOO_MOVED, KAZOO_EXPIRED = conversations("client-kazoo.hex")
ZKCLI, CUT, CUT_AGAIN, THIRD, JAVA = conversations("client-java.hex")

KAZOO_ASKED: list[tuple[int, Record]] = [
    (1, Create("/a", b"data", OPEN, 0)),
    (2, Create("/a/eph", b"e", OPEN, 1)),
    (3, Create("/a/seq-", b"", OPEN, 2)),
    (4, Create2("/a/st", b"x", OPEN, 0)),
    (5, Create("/c", b"", (Acl(31, Id("digest", "u:Jq7wMyA/w2Vd5WIDAKdu4OIIFEQ=")), *OPEN), 0)),
    (6, SetData("/a", b"new", -1)),
    (7, GetData("/a", True)),
    (8, Exists("/a/none", True)),
    (9, GetChildren("/a", True)),
    (10, GetChildren2("/a", False)),
    (11, SetData("/a", b"\xc3\xa4", -1)),
    (12, GetAcl("/a")),
    (13, SetAcl("/a/st", OPEN, -1)),
    (14, Sync("/a")),
    (15, Create("/a/none", b"", OPEN, 0)),
    (16, Create("/ä中", b"utf", OPEN, 0)),
    (
        17,
        Multi(
            (
                Create("/m", b"1", OPEN, 0),
                SetData("/m", b"2", -1),
                Check("/m", 1),
                Delete("/m", -1),
                Create("/m2", b"x", OPEN, 0),
            )
        ),
    ),
    (18, Multi((Create("/n", b"1", OPEN, 0), Delete("/nonode", -1), Create("/o", b"", OPEN, 0)))),
    (19, Create("/a", b"", OPEN, 0)),
    (20, Delete("/zz", -1)),
    (21, SetData("/a", b"", 77)),
    (-4, SetAuth(0, "digest", b"u:p")),
    (22, Delete("/m2", -1)),
]
ZKCLI_ASKED: list[tuple[int, Record]] = [
    (1, CreateContainer("/cont", b"x", OPEN, 4)),
    (2, Create("/cont/child", b"y", OPEN, 0)),
    (3, CreateTtl("/ttl", b"t", OPEN, 5, 60000)),
    (4, GetAllChildrenNumber("/")),
    (5, GetEphemerals("/")),
    (6, WhoAmI()),
    (7, AddWatch("/a", 0)),
    (8, Delete("/cont/child", -1)),
    (9, Exists("/a", False)),
    (10, GetAcl("/a")),
    (11, RemoveWatches("/a", 3)),
    (12, Sync("/a")),
    (13, CloseSession()),
]
JAVA_ASKED: list[tuple[int, Record]] = [
    (1, Create("/j", None, OPEN, 0)),
    (2, Create("/j/e", b"x", OPEN, 1)),
    (3, MultiRead((GetData("/j", False), GetChildren("/j", False), GetData("/none", False)))),
    (
        4,
        Multi(
            (
                CreateContainer("/k", b"\1", OPEN, 4),
                CreateTtl("/l", b"\1", OPEN, 5, 60000),
                SetData("/l", None, -1),
                Check("/l", 1),
                Delete("/k", -1),
            )
        ),
    ),
    (5, GetEphemerals("/")),
    (6, GetAllChildrenNumber("/")),
    (7, WhoAmI()),
    (8, GetData("/j", True)),
    (9, SetData("/j", b"2", 0)),
    (10, RemoveWatches("/j", 3)),
]
WATCHES_AGAIN: list[tuple[int, Record]] = [
    (3, SetWatches(0x100000020, (), ("/nope",), ("/a",))),
    (4, AddWatch("/c", 1)),
]
ALL_WATCHES_AGAIN: list[tuple[int, Record]] = [
    (5, SetWatches2(0x100000020, (), ("/nope",), ("/a",), (), ("/c",))),
    (6, CloseSession()),
]
ASKED = [
    pytest.param(KAZOO, KAZOO_ASKED, id="kazoo"),
    pytest.param(ZKCLI, ZKCLI_ASKED, id="zkCli"),
    pytest.param(CUT_AGAIN, WATCHES_AGAIN, id="setWatches"),
    pytest.param(THIRD, ALL_WATCHES_AGAIN, id="setWatches2"),
    pytest.param(JAVA, JAVA_ASKED, id="Java client"),
]

ANSWERS: dict[type[Record], type[Record] | None] = {
    Create: replies.PathReply,
    Create2: replies.Create2Reply,
    CreateContainer: replies.Create2Reply,
    CreateTtl: replies.Create2Reply,
    Delete: None,
    Exists: replies.StatReply,
    GetData: replies.DataReply,
    SetData: replies.StatReply,
    GetAcl: replies.AclReply,
    SetAcl: replies.StatReply,
    GetChildren: replies.ChildrenReply,
    GetChildren2: replies.Children2Reply,
    Sync: replies.PathReply,
    Multi: replies.MultiReply,
    MultiRead: replies.MultiReply,
    GetAllChildrenNumber: replies.NumberReply,
    GetEphemerals: replies.EphemeralsReply,
    WhoAmI: replies.WhoAmIReply,
    AddWatch: replies.ErrorReply,
    SetAuth: None,
    SetWatches: None,
    SetWatches2: None,
    RemoveWatches: None,
    CloseSession: None,
}


@pytest.mark.parametrize(("conversation", "asked"), ASKED)
def test_requests_of_real_clients_are_understood(conversation: Conversation, asked: list[tuple[int, Record]]) -> None:
    frames = conversation[0][1 : 1 + len(asked)]

    assert [decode_request(frame) for frame in frames] == asked


@pytest.mark.parametrize(("conversation", "asked"), ASKED)
def test_their_bodies_are_written_as_the_clients_wrote_them(
    conversation: Conversation, asked: list[tuple[int, Record]]
) -> None:
    bodies = [frame[8:] for frame in conversation[0][1 : 1 + len(asked)]]

    assert [encode(record) for _, record in asked] == bodies


@pytest.mark.parametrize(("conversation", "asked"), ASKED)
def test_replies_and_events_are_written_as_the_real_server_wrote_them(
    conversation: Conversation, asked: list[tuple[int, Record]]
) -> None:
    requests = dict(asked)
    compared = 0
    for frame in conversation[1][1:]:
        xid, zxid, code = struct.unpack_from(">iqi", frame)
        if xid == -1:
            event: Any = decode_whole(replies.WatcherEvent, frame, 16)
            written = encode_event(Event(EventType(event.type), event.path))
        elif xid in requests:
            cls = ANSWERS[type(requests[xid])]
            answer = None if cls is None or code else decode_whole(cls, frame, 16)
            written = encode_reply(xid, zxid, Code(code), answer)
        else:
            continue
        assert written == struct.pack(">i", len(frame)) + frame
        compared += 1
    assert compared >= len(asked)


def test_the_answers_say_what_happened() -> None:
    answers = {struct.unpack_from(">i", frame)[0]: frame for frame in KAZOO[1]}

    assert decode_whole(replies.PathReply, answers[3], 16).path == "/a/seq-0000000001"
    assert decode_whole(replies.PathReply, answers[16], 16).path == "/ä中"
    assert [result.type for result in decode_whole(replies.MultiReply, answers[17], 16).results] == [1, 5, 13, 2, 1]
    assert [result.record for result in decode_whole(replies.MultiReply, answers[18], 16).results] == [
        replies.ErrorReply(Code.OK),
        replies.ErrorReply(Code.NO_NODE),
        replies.ErrorReply(Code.RUNTIME_INCONSISTENCY),
    ]


@pytest.mark.parametrize(
    ("conversation", "asked"),
    [
        pytest.param(KAZOO, ConnectRequest(0, 0, 9000, 0, NO_PASSWD, False), id="kazoo"),
        pytest.param(KAZOO_EXPIRED, ConnectRequest(0, 0, 9000, 12345, b"\1" * 16, False), id="a session nobody has"),
        pytest.param(ZKCLI, ConnectRequest(0, 0, 30000, 0, NO_PASSWD, False), id="zkCli"),
    ],
)
def test_what_clients_say_first_is_understood(conversation: Conversation, asked: ConnectRequest) -> None:
    assert decode_connect_request(conversation[0][0]) == asked


def test_a_client_that_moves_names_its_session_and_the_password_it_was_given() -> None:
    given = KAZOO[1][0][-17:-1]

    assert decode_connect_request(KAZOO_MOVED[0][0]) == ConnectRequest(0, 0, 9000, MOVED, given, False)


@pytest.mark.parametrize(
    ("conversation", "response"),
    [
        pytest.param(
            KAZOO_MOVED,
            ConnectResponse(9000, MOVED, bytes.fromhex("00c0e3108df10d9cde52f1941e057eb9"), False),
            id="a session",
        ),
        pytest.param(KAZOO_EXPIRED, ConnectResponse(0, 0, NO_PASSWD, False), id="a session that has expired"),
    ],
)
def test_a_session_is_given_as_the_real_server_gives_it(conversation: Conversation, response: ConnectResponse) -> None:
    answer = conversation[1][0]

    assert encode_connect_response(response) == struct.pack(">i", len(answer)) + answer


def test_an_old_client_says_nothing_of_read_only_and_is_told_nothing() -> None:
    asked = decode_connect_request(KAZOO[0][0][:-1])
    answer = encode_connect_response(ConnectResponse(9000, 1, NO_PASSWD, asked.read_only))

    assert asked.read_only is None
    assert len(answer) == 4 + 36


def test_what_follows_a_request_is_ignored_as_the_real_server_ignores_it() -> None:
    assert decode_request(struct.pack(">ii", 1, 4) + b"\0\0\0\2/a\0garbage") == (1, GetData("/a", False))


@pytest.mark.parametrize(
    ("opcode", "body", "code"),
    [
        pytest.param(4, b"\0\0\x13\x88\0", Code.MARSHALLING_ERROR, id="a length beyond the frame"),
        pytest.param(4, b"\xff\xff\xff\xff\0", Code.MARSHALLING_ERROR, id="a null path"),
        pytest.param(1, b"\0\0\0\2/a", Code.MARSHALLING_ERROR, id="cut short"),
        pytest.param(14, b"\0\0\0\x0e\0\xff\xff\xff\xff", Code.MARSHALLING_ERROR, id="a multi in a multi"),
        pytest.param(101, bytes(8) + b"\x7f\xff\xff\xff", Code.MARSHALLING_ERROR, id="a vector without end"),
        pytest.param(77, b"", Code.UNIMPLEMENTED, id="an unknown opcode"),
    ],
)
def test_a_broken_request_is_answered_as_a_real_server_was_seen_to_answer(opcode: int, body: bytes, code: Code) -> None:
    with pytest.raises(BadRequestError) as error:
        decode_request(struct.pack(">ii", 9, opcode) + body)

    assert (error.value.xid, error.value.code) == (9, code)


def test_a_check_of_its_own_is_refused() -> None:
    """A real ensemble of 3.8.0 logs it as a transaction, and none of its servers can read that log again."""
    with pytest.raises(BadRequestError, match=r"check \(13\) outside a multi"):
        decode_request(struct.pack(">ii", 1, 13) + encode(Check("/a", -1)))


def test_a_client_may_not_open_sessions_by_request() -> None:
    with pytest.raises(BadRequestError, match="createSession"):
        decode_request(struct.pack(">iii", 1, -10, 4000))


def test_a_frame_without_a_header_is_refused() -> None:
    with pytest.raises(JuteError, match="RequestHeader at byte 0: 5 bytes, where it takes 8"):
        decode_request(b"12345")
