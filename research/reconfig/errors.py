"""Every refusal of a reconfiguration: the request, and the code in the reply.

Source: `PrepRequestProcessor.pRequest2Txn` (reconfig), `KeeperException.Code`.
"""

from collections.abc import Iterable
from pathlib import Path

from harness import real
from harness.processes import Process, ServerError, free_ports, wait_until
from harness.reproduce.by_hand.servers import OPTIONS, Bench, ReconfigServers
from harness.servers import RECONFIG
from harness.session import Session
from harness.zoo_cfg import Member, View, write_zoo_cfg
from research.reconfig.facts import FactTable
from spec.text import required_integer

NAMES = {
    0: "accepted", -5: "MarshallingError", -6: "Unimplemented", -8: "BadArguments", -13: "NewConfigNoQuorum",
    -14: "ReconfigInProgress", -102: "NoAuth", -103: "BadVersion", -123: "ReconfigDisabled",
}  # fmt: skip
"""The codes of `KeeperException.Code` that were seen or read here."""


def measure(bench: Bench) -> Iterable[FactTable]:
    """The codes of refused requests at a leader of three, and at three servers that refuse everything."""
    rows: list[tuple[str, str]] = []
    with bench.servers("errors", (1, 2, 3, 4, 5)) as servers:
        servers.begin_led_by(3, (1, 2, 3))
        rows += _refused(servers)
    with bench.servers("disabled", (1, 2, 3), keys={"reconfigEnabled": "false"}) as servers:
        servers.begin_led_by(3, (1, 2, 3))
        rows.append(("`reconfigEnabled=false` at the leader", _code(servers.reconfig(3, leave=[1]).err)))
    with bench.servers("no-auth", (1, 2, 3), options=()) as servers:
        servers.begin_led_by(3, (1, 2, 3))
        rows.append(("no `skipACL`, no superuser", _code(servers.reconfig(3, leave=[1]).err)))
    rows.append(
        ("a standalone server, with `reconfigEnabled=true`", _code(_standalone(bench.directory, bench.release)))
    )
    yield FactTable("errors", ("request", "reply"), tuple(rows))


def _refused(servers: ReconfigServers) -> Iterable[tuple[str, str]]:
    member = servers.members[4]
    peer = f"zk4:{member.quorum_port}:{member.election_port}"
    raw: dict[str, tuple[str | None, str | None, str | None, int]] = {
        "`curConfigId` other than the version": (None, "1", None, 7),
        "a joiner without a client address": (f"server.4={peer}:participant", None, None, -1),
        "a joiner without `=`": ("server.4", None, None, -1),
        "a leaver that is no number": (None, "one", None, -1),
        "all servers leave": (None, "1,2,3", None, -1),
        "`newMembers` with an unknown key": (None, None, "tickTime=2000", -1),
        "1 and 2 leave, 4 and 5 join, and neither runs": (*servers.change(join=[4, 5], leave=[1, 2])[:2], None, -1),
        "4 joins and does not run: three of four are synced": (*servers.change(join=[4])[:2], None, -1),
        "an unknown server leaves": (None, "9", None, -1),
        "the right `curConfigId`, 4 leaves": (None, "4", None, 0x100000008),
    }
    session = servers.connect(3)
    for request, values in raw.items():
        if request.startswith("the right"):
            values = (*values[:3], servers_version(servers))  # noqa: PLW2901
        yield request, _code(session.ask(RECONFIG, *values).err)
    session.close()
    first, second = servers.connect(3), servers.connect(3)
    servers.pause(1)
    servers.pause(2)
    first.send(RECONFIG, *servers.change(leave=[1]))
    wait_until(lambda: servers.file(3, "zoo.cfg.dynamic.next") is not None, 10.0, "a reconfiguration is outstanding")
    second.send(RECONFIG, *servers.change(leave=[2]))
    early = second.wait_event(1.0) if second.readable() else None
    silent = early is None and not second.readable()
    servers.resume(1)
    servers.resume(2)
    yield "another one is outstanding; the first reply", _code(first.receive(RECONFIG).err)
    yield "another one is outstanding; the second reply", _code(second.receive(RECONFIG).err)
    yield "the second reply came before the first one was committed", "no" if silent else "yes"
    first.drop()
    second.drop()


def servers_version(servers: ReconfigServers) -> int:
    """The version of the configuration that clients read from server 3."""
    return required_integer(servers.config(3).rpartition("version=")[2].strip(), base=16)


def _standalone(directory: Path, release: str) -> int:
    client, quorum, election = free_ports(3)
    member = Member(1, client, quorum, election)
    view = View((member,), extra={"reconfigEnabled": "true"}, standalone=True)
    home = directory / "standalone"
    command = real.command(write_zoo_cfg(view, member, home), (*OPTIONS, "-Dzookeeper.skipACL=yes"), release)
    process = Process(command, home, home / "log.txt")
    process.start()
    try:
        session = Session(ReconfigServers.session_milliseconds)

        def connects() -> bool:
            try:
                return session.connect(member.client_port) > 0
            except (ServerError, OSError):
                return False

        wait_until(connects, 30.0, "the standalone server serves", home / "log.txt")
        code = session.ask(RECONFIG, None, "1", None, -1).err
        session.drop()
        return code
    finally:
        process.kill()


def _code(code: int) -> str:
    return f"{code} {NAMES.get(code, '')}".strip()
