"""Ensembles of nodes and real servers whose members change by `reconfig`: requests, files, and the end of a run.

All servers have `reconfigEnabled=true` and skip ACLs. A member is named with its client address in a request, so every
dynamic file has it.
"""

import logging
import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from kazoo.exceptions import (
    ConnectionLoss,
    KazooException,
    NewConfigNoQuorumError,
    ReconfigInProcessError,
    SessionExpiredError,
)
from kazoo.handlers.threading import KazooTimeoutError

from harness.ensemble import Ensemble
from harness.processes import LOOPBACK, ServerError
from tests.node.conftest import NEWEST
from tests.node.connecting import WAIT, client_at
from tests.support.programs import need_kind

logger = logging.getLogger(__name__)

PARTICIPANT, OBSERVER = "participant", "observer"
Roles = Mapping[int, str]
T = TypeVar("T")


def reconfigurable(kinds: Sequence[str], directory: Path, members: Sequence[int], **options: object) -> Ensemble:
    """Return an ensemble of which only `members` are in the files of the members; a joiner's file has itself too."""
    for kind in kinds:
        need_kind(kind, NEWEST)
    ensemble = Ensemble(
        kinds,
        directory,
        extra={"reconfigEnabled": "true", "skipACL": "yes"},
        java_options=(),
        journal=True,
        release=NEWEST,
        **options,  # type: ignore[arg-type]
    )
    for sid in ensemble.sids:
        ensemble.tell(sid, sorted({*members, sid}))
    return ensemble


def awaited(value: Callable[[], T | None], what: str) -> T:
    """Return the first value that is not None; asks again while there is none, or no connection."""
    deadline = time.monotonic() + WAIT
    while time.monotonic() < deadline:
        try:
            found = value()
        except (KazooException, KazooTimeoutError):
            found = None
        if found is not None:
            return found
        time.sleep(0.05)
    raise ServerError(f"{what}: not within {WAIT:g} s")


def line_of(ensemble: Ensemble, sid: int, role: str = PARTICIPANT) -> str:
    member = ensemble.member(sid)
    return f"server.{sid}={LOOPBACK}:{member.quorum_port}:{member.election_port}:{role};{LOOPBACK}:{member.client_port}"


def roles_in(config: str) -> Roles:
    """The members of a configuration, each with its role."""
    return {int(sid): role for sid, role in re.findall(r"^server\.(\d+)=.*?:(participant|observer)", config, re.M)}


def version_in(config: str) -> int:
    found = re.search(r"^version=([0-9a-f]+)$", config, re.M)
    assert found is not None, config
    return int(found[1], 16)


def config_at(ensemble: Ensemble, sid: int) -> str:
    """The data of `/zookeeper/config` at one server."""
    with client_at(ensemble, sid) as asking:
        data: bytes = asking.get("/zookeeper/config")[0]
        return data.decode()


def active_file(ensemble: Ensemble, sid: int) -> Path:
    """The file that `dynamicConfigFile` names in the zoo.cfg of a server."""
    text = (ensemble.directory / f"server-{sid}" / "zoo.cfg").read_text()
    found = re.search(r"^dynamicConfigFile=(.+)$", text, re.M)
    assert found is not None, text
    return Path(found[1])


def next_file(ensemble: Ensemble, sid: int) -> Path:
    """The file of the configuration that a server has seen last."""
    return ensemble.directory / f"server-{sid}" / "zoo.cfg.dynamic.next"


def change_members(
    ensemble: Ensemble, roles: Roles, sids: Sequence[int], joining: str | None = None, leaving: str | None = None
) -> None:
    """Ask some of these servers for a reconfiguration until one of them shows these members.

    A client may not hear of a reconfiguration that moves its server to another leader. A request is refused while
    another one is pending, or while no quorum of the new members is synchronised.
    """

    def ask() -> bool | None:
        with client_at(ensemble, *sids) as asking:
            try:
                asking.reconfig(joining, leaving, None)
            except (ConnectionLoss, SessionExpiredError, ReconfigInProcessError, NewConfigNoQuorumError) as error:
                logger.info("asked again: %r", error)
            return roles_in(asking.get("/zookeeper/config")[0].decode()) == roles or None

    awaited(ask, f"the members are {dict(roles)}")


def agreed(ensemble: Ensemble, sids: Sequence[int], roles: Roles) -> str:
    """Wait until these servers have the configuration with these members, in the tree and in their files; return it."""

    def all_have_it() -> str | None:
        configs = {config_at(ensemble, sid) for sid in sids}
        if len(configs) != 1 or roles_in(next(iter(configs))) != roles:
            return None
        config = configs.pop()
        lines = sorted(line for line in config.splitlines() if not line.startswith("version="))
        for sid in sids:
            file = active_file(ensemble, sid)
            if not file.name.endswith(f".{version_in(config):x}") or next_file(ensemble, sid).exists():
                return None
            if sorted(file.read_text().split()) != lines:
                return None
        return config

    return awaited(all_have_it, f"servers {sids} agree on the members {dict(roles)}")
