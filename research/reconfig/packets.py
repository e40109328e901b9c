"""The bytes of a reconfiguration on the three ports: an observer is added, then promoted, by a leader of three.

Source: `Leader.propose`, `commitAndActivate`, `informAndActivate`; `LearnerInfo`; `FastLeaderElection.buildMsg`.
"""

import struct
from collections.abc import Iterable

from harness.layouts import read
from harness.processes import ServerError, wait_until
from harness.reproduce.by_hand.observation import gossip_of, wait_config
from harness.reproduce.by_hand.servers import Bench, ReconfigServers, SeenPacket
from harness.reproduce.proxies import HEAD
from research.reconfig.facts import FactTable
from spec.quorum import Sid

FOUR = "0x100000001: {1, 2, 3 + observer 4}"
PROMOTED = "0x100000002: {1, 2, 3, 4}"
TXN_HEADER = "lilli"
"""TxnHeader: session, cxid, zxid, time, type."""
DIGEST = struct.Struct(">iq")


def measure(bench: Bench) -> Iterable[FactTable]:
    """The packets of one run, decoded field by field."""
    with bench.servers("packets", (1, 2, 3, 4)) as servers:
        servers.begin_led_by(3, (1, 2, 3))
        servers.begin(4, {1: "participant", 2: "participant", 3: "participant", 4: "observer"})
        servers.wait_serving([4])
        answer = servers.reconfig(3, join={4: "observer"})
        wait_config(servers, servers.sids, FOUR)
        wait_until(lambda: servers.role(4) == "observer", 30.0, "server 4 is an observer")
        servers.reconfig(3, join={4: "participant"})
        wait_config(servers, servers.sids, PROMOTED)
        wait_until(lambda: servers.role(4) == "follower", 30.0, "server 4 is a follower")
        yield FactTable("packets", ("packet", "from, to", "zxid", "data"), tuple(_rows(servers)))
        yield FactTable("answers", ("question", "answer"), tuple(_answers(servers, answer.values)))


def _rows(servers: ReconfigServers) -> Iterable[tuple[str, ...]]:
    def row(seen: SeenPacket, data: str) -> tuple[str, ...]:
        packet = seen.packet
        return (f"{packet.name} {packet.type}", f"{seen.sender}, {seen.receiver}", f"{packet.zxid:#x}", data)

    for sid, nth in ((1, 0), (4, 0), (4, 1)):
        registrations = [
            info for info in servers.packets("FOLLOWERINFO") + servers.packets("OBSERVERINFO") if info.sender == sid
        ]
        registrations.sort(key=lambda each: each.moment)
        if nth < len(registrations):
            info = registrations[nth]
            peer, protocol, version = read("lil", _data(info))[0]
            yield row(info, f"sid {peer}, protocol {protocol:#x}, configVersion {version:#x}")
    first = _first(servers, "NEWLEADER", 1)
    yield row(first, f"the last-seen configuration: {_text(servers, _data(first))}")
    proposals = (packet for packet in servers.packets("PROPOSAL") if packet.receiver == 1)
    proposal = next(packet for packet in proposals if read(TXN_HEADER, _data(packet))[0][4] == 16)
    yield row(proposal, _proposal(servers, _data(proposal)))
    for name, receiver in (("COMMITANDACTIVATE", 1), ("COMMITANDACTIVATE", 4), ("INFORMANDACTIVATE", 4)):
        commit = _first(servers, name, receiver)
        (leader,), end = read("l", _data(commit))
        rest = _data(commit)[end:]
        data = f"designated leader, a long: {leader}"
        yield row(commit, f"{data}; then {_proposal(servers, rest)}" if rest else data)


def _answers(servers: ReconfigServers, values: tuple[object, ...]) -> Iterable[tuple[str, str]]:
    config, stat = values
    assert isinstance(config, bytes)
    gossip = gossip_of(servers, 1)
    assert gossip is not None
    yield "reply to opcode 16: data", _text(servers, config)
    yield "reply to opcode 16: Stat", f"version {stat.version}, mzxid {stat.mzxid:#x}, czxid {stat.czxid:#x}"  # type: ignore[attr-defined]
    yield "`/zookeeper/config` at 1, after the second reconfiguration", _lines(servers.config(1))
    yield "`conf` at 1, from `membership:` on", _lines(servers.word(1, "conf").partition("membership: \n")[2])
    yield "`srvr` at 1 names the configuration", "yes" if "version=" in servers.word(1, "srvr") else "no"
    yield "notification of 1: format, configuration", f"{gossip[0]}, {_text(servers, gossip[1].encode())}"


def _first(servers: ReconfigServers, name: str, receiver: Sid) -> SeenPacket:
    for packet in servers.packets(name):
        if packet.receiver == receiver:
            return packet
    raise ServerError(f"no {name} to server {receiver} was seen")


def _data(seen: SeenPacket) -> bytes:
    raw = seen.packet.raw
    _, _, length = HEAD.unpack_from(raw)
    return raw[HEAD.size : HEAD.size + max(length, 0)]


def _proposal(servers: ReconfigServers, data: bytes) -> str:
    (_, _, zxid, _, kind), offset = read(TXN_HEADER, data)
    (path, config, version), offset = read("sbi", data, offset)
    digest_version, _ = DIGEST.unpack_from(data, offset)
    rest = len(data) - offset - DIGEST.size
    text = _text(servers, config)
    return (
        f"TxnHeader with type {kind} and zxid {zxid:#x}; SetDataTxn: path `{path}`, data {text}, version {version}; "
        f"TxnDigest with version {digest_version}; {rest} bytes left"
    )


def _text(servers: ReconfigServers, data: bytes) -> str:
    return _lines(servers.members.plain(data.decode("utf-8")))


def _lines(text: str) -> str:
    return "`" + text.strip("\n").replace("\n", "\\n") + "`"
