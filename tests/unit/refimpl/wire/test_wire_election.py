"""The election port: recorded messages of real servers, the old forms, and malformed messages.

golden/wire/election.hex describes the recording. The malformed messages are those of ZooKeeper's
FLEMalformedNotificationMessageTest.
"""

import struct
from pathlib import Path

import pytest
from msgspec.structs import replace

from refimpl.jute import JuteError
from refimpl.wire.election import (
    MAX_FRAME,
    Opening,
    OpeningDecoder,
    decode_notification,
    encode_notification,
    encode_opening,
    notifications,
)
from spec.config import Address
from spec.election.messages import Notification
from spec.election.vote import LONG_MIN, ServerState, Vote
from spec.quorum import majority_view
from spec.txn import make_zxid

LINES = [
    (line[0], bytes.fromhex(line[2:]))
    for line in (Path(__file__).parents[2] / "golden" / "wire" / "election.hex").read_text().splitlines()
    if line[0] != "#"
]
OPENINGS = [data for kind, data in LINES if kind == "o"]
FRAMES = [data for kind, data in LINES if kind != "o"]
CONFIG = "server.1=h:1:2:participant\nserver.2=i:1:2:participant\nversion=0"

LOOKING, FOLLOWING, LEADING = ServerState.LOOKING, ServerState.FOLLOWING, ServerState.LEADING


def config_of(frame: bytes) -> str:
    return frame[44:].decode()


def test_real_openings_are_read_and_written() -> None:
    first, second = OPENINGS

    assert OpeningDecoder().feed(first) == (Opening(2, (Address("127.0.0.1", 29522),)), b"")
    assert encode_opening(Opening(2, (Address("127.0.0.1", 29522),))) == first
    assert OpeningDecoder().feed(second) == (Opening(4, (Address("127.0.0.1", 29542),)), b"")


def test_an_opening_is_read_however_it_is_cut_and_leaves_what_follows() -> None:
    decoder = OpeningDecoder()
    parts = [OPENINGS[0][at : at + 1] for at in range(len(OPENINGS[0]))]

    assert [decoder.feed(part) for part in parts[:-1]] == [None] * (len(parts) - 1)
    assert decoder.feed(parts[-1] + b"more") == (Opening(2, (Address("127.0.0.1", 29522),)), b"more")


def test_several_addresses_make_the_other_protocol() -> None:
    addresses = (Address("a", 1), Address("::1", 2))
    opening = encode_opening(Opening(3, addresses))

    assert opening == struct.pack(">qqi", -65535, 3, 11) + b"a:1|[::1]:2"
    assert OpeningDecoder().feed(opening) == (Opening(3, addresses), b"")


def test_an_address_that_stands_for_any_is_no_address() -> None:
    opening = struct.pack(">qqi", -65536, 3, 9) + b"0.0.0.0:1"

    assert OpeningDecoder().feed(opening) == (Opening(3, ()), b"")


def test_a_server_before_3_5_opens_with_its_number_alone() -> None:
    assert OpeningDecoder().feed(struct.pack(">q", 3) + b"more") == (Opening(3, ()), b"more")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        pytest.param(struct.pack(">q", -1), "opening.protocol at byte 0: -1", id="unknown protocol"),
        pytest.param(struct.pack(">qqi", -65536, 1, 0), "opening.length at byte 16: 0, where 1 to 2048", id="empty"),
        pytest.param(struct.pack(">qqi", -65536, 1, -1), "opening.length at byte 16: -1", id="negative"),
        pytest.param(struct.pack(">qqi", -65536, 1, 2049), "opening.length at byte 16: 2049", id="too long"),
        pytest.param(struct.pack(">qqi", -65536, 1, 1) + b"h", "opening.addresses at byte 20: 'h'", id="no port"),
        pytest.param(struct.pack(">qqi", -65536, 1, 7) + b"h:99999", "opening.addresses", id="port out of range"),
        pytest.param(struct.pack(">qqi", -65536, 1, 3) + b"\xff:1", "opening.addresses at byte 20: inv", id="no text"),
    ],
)
def test_an_opening_that_is_none_is_refused(data: bytes, said: str) -> None:
    with pytest.raises(JuteError, match=f"^{said}"):
        OpeningDecoder().feed(data)


def test_an_opening_names_an_address() -> None:
    with pytest.raises(JuteError, match=r"opening.addresses: 0 bytes"):
        encode_opening(Opening(1, ()))


def test_real_notifications_are_written_as_they_were_read() -> None:
    for frame in FRAMES:
        received = decode_notification(frame)
        assert encode_notification(received, config_of(frame)) == struct.pack(">i", len(frame)) + frame


@pytest.mark.parametrize(
    ("at", "notification"),
    [
        pytest.param(0, Notification(LOOKING, Vote(2, 0, 0), 1), id="a server looks, for itself"),
        pytest.param(1, Notification(LOOKING, Vote(3, 0, 0), 1), id="it has changed its vote"),
        pytest.param(2, Notification(LOOKING, Vote(2, make_zxid(1, 77), 1), 2), id="with data, in the next round"),
        pytest.param(
            6, Notification(LOOKING, Vote(LONG_MIN, LONG_MIN, LONG_MIN), 1), id="an observer, without a voice"
        ),
        pytest.param(9, Notification(LEADING, Vote(3, 0, 1), 1), id="a leader, in its epoch"),
    ],
)
def test_a_real_notification_says_the_vote(at: int, notification: Notification) -> None:
    assert decode_notification(FRAMES[at]) == notification


def test_a_configuration_without_a_version_is_not_part_of_the_notification() -> None:
    assert decode_notification(FRAMES[0]).config is None


def test_a_configuration_with_a_version_is_part_of_the_notification_with_its_lines() -> None:
    lines = CONFIG.removesuffix("version=0").rstrip("\n")
    view = replace(majority_view({1, 2}, version=0x100000003), text=lines)
    sent = Notification(FOLLOWING, Vote(2, 7, 1), 4, view)

    assert decode_notification(encode_notification(sent, f"{lines}\nversion=100000003")[4:]) == sent


def test_a_host_with_a_line_break_makes_a_configuration_invalid_and_the_vote_counts() -> None:
    """A server that adopted it could neither write it into its file nor send it."""
    text = rb"server.1=a\nb:1:2" + b"\nversion=7"
    received = decode_notification(struct.pack(">iqqqqii", 0, 3, 0, 1, 0, 2, len(text)) + text)
    assert (received.vote.leader, received.config) == (3, None)


def test_the_oldest_form_has_the_epoch_of_its_zxid() -> None:
    frame = struct.pack(">iqqq", 0, 2, make_zxid(5, 6), 7)

    assert decode_notification(frame) == Notification(LOOKING, Vote(2, make_zxid(5, 6), 5), 7)


def test_the_form_without_a_version_is_read() -> None:
    """40 bytes; the last 4 are not read (ZOOKEEPER-107)."""
    frame = struct.pack(">iqqqqi", 1, 2, 3, 4, 5, 99)

    assert decode_notification(frame) == Notification(FOLLOWING, Vote(2, 3, 5), 4)


def test_a_version_before_configurations_has_none() -> None:
    frame = struct.pack(">iqqqqii", 1, 2, 3, 4, 5, 1, 99)

    assert decode_notification(frame) == Notification(FOLLOWING, Vote(2, 3, 5), 4)


def test_a_configuration_that_is_none_costs_nothing_but_itself() -> None:
    received = decode_notification(struct.pack(">iqqqqii", 0, 1, 0, 0, 0, 2, 7) + b"nothing")

    assert received == Notification(LOOKING, Vote(1, 0, 0), 0)


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        pytest.param(struct.pack(">iq", 0, 0), "Notification at byte 12: it ends here", id="too short for any form"),
        pytest.param(
            struct.pack(">iqqqqii", 0, 0, 0, 0, 0, 2, -123), "Notification.config .* -123", id="negative length"
        ),
        pytest.param(
            struct.pack(">iqqqqii", 0, 0, 0, 0, 0, 2, 10000) + b"server.1=h",
            "Notification.config .* 10000",
            id="length",
        ),
        pytest.param(struct.pack(">iqqqh", 0, 1, 0, 0, 0), "Notification at byte 30: it ends here", id="half an epoch"),
        pytest.param(struct.pack(">iqqqqh", 0, 1, 0, 0, 0, 0), "Notification at byte 38", id="half a version"),
        pytest.param(struct.pack(">iqqqqih", 0, 1, 0, 0, 0, 2, 0), "Notification at byte 42", id="half a length"),
        pytest.param(struct.pack(">iqqq", 4, 1, 0, 0), "Notification.state at byte 0: 4", id="unknown state"),
        pytest.param(struct.pack(">iqqq", -1, 1, 0, 0), "Notification.state at byte 0: -1", id="negative state"),
    ],
)
def test_a_malformed_notification_is_refused(frame: bytes, said: str) -> None:
    with pytest.raises(JuteError, match=f"^{said}"):
        decode_notification(frame)


def test_frames_are_cut_from_the_stream_wherever_it_is_cut() -> None:
    frames = notifications()
    stream = b"".join(struct.pack(">i", len(frame)) + frame for frame in FRAMES)

    assert [frame for at in range(0, len(stream), 11) for frame in frames.feed(stream[at : at + 11])] == FRAMES


@pytest.mark.parametrize("length", [0, -1, MAX_FRAME + 1])
def test_a_frame_out_of_bounds_is_refused_by_its_length(length: int) -> None:
    with pytest.raises(JuteError, match=f"frame.length at byte 0: {length}, where 1 to {MAX_FRAME}"):
        notifications().feed(struct.pack(">i", length))


@pytest.mark.parametrize("config", ["", "x" * MAX_FRAME], ids=["empty", "too long"])
def test_a_configuration_that_no_server_would_take_is_not_sent(config: str) -> None:
    with pytest.raises(JuteError, match=r"Notification.config: \d+ bytes"):
        encode_notification(Notification(LOOKING, Vote(1, 0, 0), 1), config)


def test_a_configuration_that_means_nothing_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stranger may send one after another, and to read 64 KiB of lines takes a quarter of a second."""
    text = b"server.1=a:1:2\n" * 4000 + b"version=100000003"
    frame = struct.pack(">iqqqqii", 0, 3, 0, 1, 0, 2, len(text)) + text
    monkeypatch.setattr("refimpl.wire.election.view_in", lambda *_: pytest.fail("it is read"))
    assert decode_notification(frame, reads_view=False) == Notification(LOOKING, Vote(3, 0, 0), 1)


def test_an_opening_has_at_most_sixteen_addresses() -> None:
    text = b"|".join([b"a:1"] * 17)
    with pytest.raises(JuteError, match="17 of them, where 16 are the most"):
        OpeningDecoder().feed(struct.pack(">qqi", -65535, 5, len(text)) + text)
