"""Incidents of files and disks: what an operator, a script or a disk did to one server or to several."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from harness.processes import ServerError, wait_until
from tests.reality.incidents.scene import SECONDS, Scene, Truth
from tests.reality.incidents.servers import StandingServers, zxid_of
from tests.reality.servers import make_certificates
from tests.reality.states import ELECTION, QUORUM

MANY = {"snapCount": "60"}
"""A log file and a snapshot for each 30 to 60 transactions."""


def _stop_with_equal_logs(scene: Scene, servers: StandingServers) -> None:
    """Stop all servers when all have every write."""
    scene.quiet()
    for sid in servers.sids:
        servers.stop(sid)


def twice_one_myid(scene: Scene) -> Truth:
    servers = scene.begin()
    scene.mark()
    servers.stop(3)
    (servers.data(3) / "myid").write_text("2\n", encoding="ascii")
    servers.start(3)
    scene.settle()
    deed = "the myid of server 3 is 2, which server 2 has as well; server 3 was restarted"
    return Truth("wrong-myid", (3,), deed, repairs={3: {"myid": "3\n"}})


def unknown_myid(scene: Scene) -> Truth:
    servers = scene.begin()
    scene.mark()
    servers.stop(3)
    (servers.data(3) / "myid").write_text("7\n", encoding="ascii")
    servers.start(3)
    scene.settle()
    deed = "the myid of server 3 is 7, which no file has; server 3 was restarted"
    return Truth("wrong-myid", (3,), deed, repairs={3: {"myid": "3\n"}})


def swapped_ports(scene: Scene) -> Truth:
    """With one such file the ensemble serves, as long as another server leads."""
    servers = scene.begin()
    _stop_with_equal_logs(scene, servers)
    scene.mark()
    text = servers.file(3)
    servers.edit(3, servers.place(3), f"{servers.host(3)}:{ELECTION}:{QUORUM}")
    for sid in servers.sids:
        servers.start(sid)
    servers.wait_serving(seconds=SECONDS)
    servers.stop(2)
    scene.resume()
    scene.settle(15.0)
    deed = "in the file of server 3 its two ports are exchanged; all were restarted, and then server 2 was stopped"
    return Truth("swapped-ports", (3,), deed, repairs={3: {"zoo.cfg": text}})


def old_file(scene: Scene) -> Truth:
    servers = scene.begin()
    _stop_with_equal_logs(scene, servers)
    scene.mark()
    for sid in (1, 3, 4):
        servers.give(sid, servers.text(sid, servers.places(1, 2, 3, 4)))
        servers.start(sid)
    servers.wait_serving((1, 3, 4), SECONDS)
    servers.stop(servers.leader())
    scene.settle(4.0)
    for sid in (1, 3, 4):
        if not servers.alive(sid):
            servers.start(sid)
    servers.start(2)
    scene.resume()
    scene.settle(12.0)
    deed = "server 4 was added to the files of 1, 3 and 4; server 2 has the file of before"
    repairs = {2: {"zoo.cfg": servers.text(2, servers.places(1, 2, 3, 4))}}
    return Truth("old-file", (2,), deed, repairs=repairs)


def without_accepted_epoch(scene: Scene) -> Truth:
    return _without_epoch(scene, "acceptedEpoch")


def without_current_epoch(scene: Scene) -> Truth:
    return _without_epoch(scene, "currentEpoch")


def _without_epoch(scene: Scene, name: str) -> Truth:
    """Lose an epoch file of server 2 in an epoch without writes."""
    servers = scene.begin()
    scene.quiet()
    leader = servers.leader()
    servers.stop(leader)
    servers.start(leader)
    servers.wait_serving(seconds=SECONDS)
    scene.mark()
    servers.stop(2)
    (servers.disk(2) / name).unlink()
    servers.start(2)
    scene.resume()
    scene.settle()
    return Truth("epoch-missing", (2,), f"{name} of server 2 was deleted, in an epoch without writes; 2 was restarted")


def epochs_contradict(scene: Scene) -> Truth:
    servers = scene.begin()
    scene.mark()
    servers.stop(2)
    (servers.disk(2) / "currentEpoch").write_text("5", encoding="ascii")
    servers.start(2)
    scene.settle()
    return Truth("epochs-contradict", (2,), "currentEpoch of server 2 is 5, above its acceptedEpoch; 2 was restarted")


def older_current_epoch(scene: Scene) -> Truth:
    servers = scene.begin()
    leader = servers.leader()
    servers.stop(leader)
    servers.start(leader)
    servers.wait_serving(seconds=SECONDS)
    scene.quiet()
    scene.resume(20)
    scene.mark()
    servers.stop(2)
    (servers.disk(2) / "currentEpoch").write_text("1", encoding="ascii")
    servers.start(2)
    scene.settle()
    return Truth(
        "epochs-contradict", (2,), "currentEpoch of server 2 is 1, below the epoch of its log; 2 was restarted"
    )


def log_missing(scene: Scene) -> Truth:
    servers = scene.begin(writes=150, **MANY)
    _stop_with_equal_logs(scene, servers)
    scene.mark()
    for file in servers.logs(3):
        file.unlink()
    for sid in servers.sids:
        servers.start(sid)
    scene.resume()
    scene.settle()
    return Truth("log-missing", (3,), "the log files of server 3 were deleted, its snapshots were not; all restarted")


def log_gap(scene: Scene) -> Truth:
    servers = scene.begin(writes=250, **MANY)
    scene.quiet()
    scene.mark()
    servers.stop(3)
    logs = servers.logs(3)
    gap = logs[len(logs) // 2]
    gap.unlink()
    for file in servers.snapshots(3):
        if zxid_of(file) >= zxid_of(gap):
            file.unlink()
    servers.start(3)
    scene.settle()
    deed = f"a log file in the middle ({len(logs)} were there) and the snapshots after it were deleted at server 3"
    return Truth("log-gap", (3,), f"{deed}, which was restarted")


def damaged_log(scene: Scene) -> Truth:
    servers = scene.begin(writes=60)
    scene.quiet()
    scene.mark()
    servers.stop(3)
    file = servers.logs(3)[-1]
    content = bytearray(file.read_bytes())
    place = len(content.rstrip(b"\0")) // 2
    content[place] ^= 0x10
    file.write_bytes(bytes(content))
    servers.start(3)
    scene.resume()
    scene.settle()
    return Truth(
        "damaged-log", (3,), f"a bit of the last log file of server 3 is wrong (byte {place}); 3 was restarted"
    )


def foreign_disk(scene: Scene) -> Truth:
    """The other ensemble is in epoch 3, so that its disk is newer than those of the ensemble."""
    other = scene.begin(writes=20)
    scene.quiet()
    for _ in range(2):
        leader = other.leader()
        other.stop(leader)
        other.start(leader)
        other.wait_serving(seconds=SECONDS)
    for sid in other.sids:
        other.stop(sid)
    disk = scene.home / "foreign"
    shutil.copytree(other.disk(3), disk)
    for sid in other.sids:
        shutil.rmtree(other.home(sid))
    scene.forget()
    servers = scene.begin()
    scene.mark()
    servers.stop(3)
    servers.erase(3)
    shutil.copytree(disk, servers.disk(3))
    servers.start(3)
    scene.settle(12.0)
    return Truth("foreign-disk", (3,), "server 3 has the disk of another ensemble, which is in epoch 3")


def unresolvable_host(scene: Scene) -> Truth:
    """Names come from a table, as from a DNS server; it lacks zk3."""
    servers = scene.make(("-Djdk.net.hosts.file={home}/hosts",))
    places = {sid: f"zk{sid}.example:{QUORUM}:{ELECTION}" for sid in (1, 2, 3)}
    names = {sid: f"{servers.host(sid)} zk{sid}.example\n" for sid in places}
    for sid in places:
        servers.give(sid, servers.text(sid, places))
        (servers.home(sid) / "hosts").write_text("".join(names.values()), encoding="ascii")
        servers.start(sid)
    servers.wait_serving(seconds=SECONDS)
    scene.load()
    scene.mark()
    servers.stop(3)
    for sid in places:
        (servers.home(sid) / "hosts").write_text(names[1] + names[2], encoding="ascii")
    for sid in (1, 2):
        servers.stop(sid)
        servers.start(sid)
    servers.start(3)
    scene.settle(12.0)
    table = {sid: {"hosts": "".join(names.values())} for sid in places}
    return Truth("unresolvable-host", (3,), "zk3.example resolves no more; all were restarted", repairs=table)


def no_quorum(scene: Scene) -> Truth:
    servers = scene.begin()
    scene.mark()
    servers.kill(2)
    servers.kill(3)
    scene.settle()
    return Truth("no-quorum", (2, 3), "servers 2 and 3 were killed; their disks are whole")


def majority_lost(scene: Scene) -> Truth:
    servers = scene.begin()
    scene.mark()
    for sid in (2, 3):
        servers.kill(sid)
        servers.erase(sid)
    scene.settle()
    return Truth("majority-lost", (2, 3), "servers 2 and 3 were killed, and their disks are lost; server 1 runs")


def tls_mixed(scene: Scene) -> Truth:
    servers = scene.begin()
    scene.mark()
    servers.stop(3)
    make_certificates(servers.home(3) / "tls", [servers.host(sid) for sid in servers.sids])
    store, trust = (servers.home(3) / "tls" / name for name in ("store.pem", "trust.pem"))
    files = {"ssl.quorum.keyStore.location": str(store), "ssl.quorum.trustStore.location": str(trust)}
    text = servers.file(3)
    servers.add(3, sslQuorum="true", **files)
    servers.start(3)
    scene.settle()
    deed = "server 3 was restarted with sslQuorum=true, the others have no TLS"
    return Truth("tls-mixed", (3,), deed, repairs={3: {"zoo.cfg": text}})


def ids_renamed(scene: Scene) -> Truth:
    """The machines of 2 and 3 exchange their ids; server 1 has not been restarted with the new file yet."""
    servers = scene.begin()
    scene.mark()
    repairs = {sid: {"zoo.cfg": servers.file(sid), "myid": f"{sid}\n"} for sid in (2, 3)}
    places = {1: servers.place(1), 2: servers.place(3), 3: servers.place(2)}
    for sid, myid in ((2, 3), (3, 2)):
        servers.stop(sid)
        servers.give(sid, servers.text(sid, places), myid)
    for sid in (2, 3):
        servers.start(sid)
    scene.settle(12.0)
    deed = "the machines of 2 and 3 have exchanged their ids, in myid and in their files, with their disks in place"
    return Truth("ids-renamed", (2, 3), f"{deed}; server 1 runs with the file of before", repairs=repairs)


def full_disk(scene: Scene) -> Truth:
    """The log files of server 2 are on a disk of 192 kB."""
    folder = scene.home / "server-2" / "txlog"
    folder.mkdir(parents=True)
    options = ["-t", "tmpfs", "-o", "size=192k", "tmpfs"]
    mounted = subprocess.run(["mount", *options, str(folder)], check=False, capture_output=True, text=True)
    if mounted.returncode:
        raise ServerError(f"no small disk can be mounted here: {mounted.stderr.strip()}")
    scene.endings.append(lambda: _unmount(folder))
    servers = scene.make()
    for sid in (1, 2, 3):
        own = {"dataLogDir": str(folder)} if sid == 2 else {}
        servers.give(sid, servers.text(sid, servers.places(1, 2, 3), **own))
        servers.start(sid)
    servers.wait_serving(seconds=SECONDS)
    scene.load()
    scene.mark()
    (folder / "core").write_bytes(bytes(shutil.disk_usage(folder).free - (8 << 10)))
    log = servers.home(2) / "log.txt"
    wait_until(lambda: "No space left" in log.read_text(encoding="utf-8"), SECONDS, "server 2 meets its full disk")
    scene.settle(1.5)  # its log grows by 15,000 lines in a second
    scene.pause(2)
    (folder / "core").unlink()  # the operator's first deed; the server would go on at once
    return Truth("full-disk", (2,), "the disk of the log files of server 2 became full")


def _unmount(folder: Path) -> None:
    subprocess.run(["umount", str(folder)], check=False, capture_output=True)


def two_leaders(scene: Scene) -> Truth:
    """Three servers become five in a wrong order: 4 and 5 first, then the leader."""
    servers = scene.make()
    old, new = servers.places(1, 2, 3), servers.places(1, 2, 3, 4, 5)
    for sid in (1, 2):
        servers.give(sid, servers.text(sid, old))
        servers.start(sid)
    servers.wait_serving(seconds=SECONDS)
    servers.give(3, servers.text(3, old))
    servers.start(3)
    servers.wait_serving(seconds=SECONDS)
    scene.load()
    scene.mark()
    for sid in (4, 5):
        servers.give(sid, servers.text(sid, new))
        servers.start(sid)
    servers.wait_serving((4, 5), SECONDS)
    servers.stop(2)
    servers.give(2, servers.text(2, new))
    servers.start(2)
    wait_until(lambda: len(servers.leaders()) == 2, SECONDS, "two servers lead")
    scene.write_at_each((1, 3), (2, 4, 5))
    scene.quiet()
    deed = "4 and 5 were started with the file of five, then leader 2 was restarted with it"
    repairs = {sid: {"zoo.cfg": servers.text(sid, new)} for sid in (1, 3)}
    return Truth("two-leaders", tuple(servers.leaders()), f"{deed}; 1 and 3 have the file of three", repairs=repairs)
