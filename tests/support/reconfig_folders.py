"""Folders of servers with `reconfigEnabled=true` and dynamic files, as operators have them."""

from collections.abc import Collection
from pathlib import Path

from checker.rollout.inputs.folders import Folder, read_folder
from spec.quorum import Sid

SETTINGS = "tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir=/var/lib/zookeeper\nstandaloneEnabled=false\n"


def dynamic_folder(
    path: Path,
    voters: Collection[Sid],
    observers: Collection[Sid] = (),
    *,
    disabled: Collection[Sid] = (),
    host: str = "zk",
    more: str = "",
) -> Folder:
    """Write a folder with one zoo.cfg and one dynamic file for each server, and read it.

    The servers `disabled` have `reconfigEnabled=false`; `more` are further lines of every dynamic file.
    """
    members = sorted((*voters, *observers))
    roles = {sid: "observer" if sid in observers else "participant" for sid in members}
    lines = "".join(f"server.{sid}={host}{sid}:2888:3888:{roles[sid]};2181\n" for sid in members)
    for sid in members:
        own = path / str(sid)
        own.mkdir(parents=True)
        enabled = f"reconfigEnabled={'false' if sid in disabled else 'true'}\n"
        (own / "zoo.cfg").write_text(f"{SETTINGS}{enabled}dynamicConfigFile=zoo.cfg.dynamic\n")
        (own / "zoo.cfg.dynamic").write_text(lines + more)
    return read_folder(path)
