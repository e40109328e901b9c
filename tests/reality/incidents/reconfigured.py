"""Incidents of ensembles with dynamic files: what a reconfiguration, or a rest of one, leaves behind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.processes import ServerError, wait_until
from harness.reproduce.by_hand.observation import wait_logged
from harness.reproduce.by_hand.replacement import NEW_SIDE, OLD_SIDE
from harness.reproduce.by_hand.servers import Bench, ReconfigServers
from harness.reproduce.proxies import Way
from harness.servers import RECONFIG, SKIP_ACL
from harness.zoo_cfg import NEXT, OBSERVER, PARTICIPANT, version_of
from spec.quorum import Sid
from tests.reality.incidents.scene import SECONDS, Scene, Truth
from tests.reality.incidents.servers import FILES, StandingServers
from tests.reality.states import CLIENT, ELECTION, QUORUM

DYNAMIC = {"reconfigEnabled": "true", "standaloneEnabled": "false"}
PROMOTED = {1: PARTICIPANT, 2: PARTICIPANT, 3: PARTICIPANT, 4: OBSERVER}
NEVER_REPLIED = 12.0


def _line(servers: StandingServers, sid: Sid) -> str:
    return f"{servers.host(sid)}:{QUORUM}:{ELECTION}:{PARTICIPANT};{servers.host(sid)}:{CLIENT}"


def _begin(scene: Scene, own: Mapping[Sid, Mapping[str, str]]) -> StandingServers:
    """Start servers 1, 2 and 3 with files that have become dynamic ones; `own` are keys of one server."""
    servers = scene.make((SKIP_ACL,))
    for sid in (1, 2, 3):
        places = {member: _line(servers, member) for member in (1, 2, 3)}
        servers.give(sid, servers.text(sid, places, **(DYNAMIC | dict(own.get(sid, {})))))
        servers.start(sid)
    servers.wait_serving(seconds=SECONDS)
    scene.load()
    return servers


def stale_next(scene: Scene) -> Truth:
    """The file is that of a change to five servers which nobody has made; its version is above the active one."""
    _leave_next(scene)
    scene.settle(3.0)
    return Truth("stale-next", (2,), f"{NEXT} of a change to five servers was left at server 2, which is stopped")


def stale_next_read(scene: Scene) -> Truth:
    """The start deletes the file; the configuration stays in the memory of the server."""
    _leave_next(scene).start(2)
    scene.settle(12.0)
    return Truth("stale-next", (2,), f"{NEXT} of a change to five servers was left at server 2, which was restarted")


def _leave_next(scene: Scene) -> StandingServers:
    servers = _begin(scene, {})
    scene.mark()
    servers.stop(2)
    lines = [f"server.{sid}={_line(servers, sid)}\n" for sid in (1, 2, 3, 4, 5)]
    (servers.home(2) / NEXT).write_text("".join(lines) + "version=700000000\n", encoding="ascii")
    return servers


def reconfig_mixed(scene: Scene) -> Truth:
    servers = _begin(scene, {1: {"reconfigEnabled": "false"}})
    places = {member: _line(servers, member) for member in (1, 2, 3, 4)}
    servers.give(4, servers.text(4, places, **DYNAMIC))
    servers.start(4)
    servers.wait_serving((4,), SECONDS)
    scene.mark()
    session = servers.connect(servers.leader())
    answer = session.ask(RECONFIG, f"server.4={places[4]}", None, None, -1)
    session.close()
    if answer.err:
        raise ServerError(f"the reconfiguration was refused with {answer.err}")
    servers.stop(1)
    servers.start(1)
    scene.settle(12.0)
    deed = "reconfigEnabled is false at server 1 alone; server 4 was added by reconfig, and 1 was restarted"
    text = servers.file(1).replace("reconfigEnabled=false", "reconfigEnabled=true")
    return Truth("reconfig-mixed", (1,), deed, repairs={1: {"zoo.cfg": text}})


def _bench(scene: Scene, roles: Mapping[Sid, str] | tuple[Sid, ...], **options: Any) -> ReconfigServers:
    servers = Bench(scene.home, scene.release).servers("incident", tuple(roles), options=(SKIP_ACL, *FILES), **options)
    scene.servers = servers
    return servers


def _asked(scene: Scene, servers: ReconfigServers, join: list[Sid]) -> int:
    """Ask leader 3 for a reconfiguration, and do not wait; return the zxid that it gets."""
    client = servers.connect(3)
    scene.endings.append(client.drop)
    zxid = max(servers.logged(3)) + 1
    client.send(RECONFIG, *servers.change(join=join))
    return zxid


def pending_view(scene: Scene) -> Truth:
    """The growth from three to five of `harness.reproduce.by_hand.pending`, while clients write."""
    servers = _bench(scene, (1, 2, 3, 4, 5), keys={"syncLimit": "16"})
    servers.begin_led_by(3, (1, 2, 3))
    for sid in (4, 5):
        servers.begin(sid, (1, 2, 3, sid))
    servers.wait_serving((4, 5))
    scene.load()
    scene.quiet()
    scene.mark()
    for sid in OLD_SIDE:
        servers.hold(sid, 3, Way.DOWN)
    zxid = _asked(scene, servers, [4, 5])
    wait_logged(servers, NEW_SIDE, zxid)
    servers.link(4, 3).drop()
    wait_until(lambda: version_of(servers.config(4)) == zxid, SECONDS, "server 4 has the pending configuration")
    servers.part(OLD_SIDE, NEW_SIDE)
    scene.write_at_each(OLD_SIDE, NEW_SIDE)
    scene.quiet()
    servers.join()
    scene.settle(4.0)
    deed = "4 and 5 were added by reconfig, 4 connected again before the commit, and the network was split for a while"
    text = (servers.home(4) / f"zoo.cfg.dynamic.{zxid:x}").read_text(encoding="utf-8")
    repairs = {sid: {servers.active_file(sid): text} for sid in OLD_SIDE}
    return Truth("pending-view", tuple(servers.leaders()), deed, repairs=repairs)


def promotion_stalled(scene: Scene) -> Truth:
    """The first case of `promotion` in `research.reconfig.suspicions`, while clients write."""
    servers = _bench(scene, PROMOTED)
    servers.begin_led_by(3, PROMOTED)
    scene.load()
    scene.quiet()
    scene.mark()
    servers.hold(1, 3, Way.UP)
    zxid = _asked(scene, servers, [4])
    wait_logged(servers, (1, 2, 3), zxid)
    servers.link(1, 3).drop()
    scene.resume()
    scene.settle(NEVER_REPLIED)
    deed = "observer 4 is being made a voter by reconfig, and the connection of 1 broke before its acknowledgement"
    return Truth("promotion-stalled", (3,), deed)
