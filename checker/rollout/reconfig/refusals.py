"""The reasons against `reconfig` for a change: refusals of ZooKeeper, and changes that are not judged here.

Source: `PrepRequestProcessor.pRequest2Txn` (reconfig), `QuorumPeer.processReconfig`; the runs in
docs/reference-reconfig-facts.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from msgspec.structs import replace

from checker.rollout.inputs.folders import Folder, ServerFiles
from checker.rollout.stages import Stage
from spec.config.server_line import ANY_ADDRESS, ServerLine, render_server
from spec.quorum import Majority, Sid


class Obstacle(Enum):
    """A reason against `reconfig`. `checker.rollout.output.by_reconfig` has the sentence and the remedy for each."""

    STANDALONE = "standalone"
    DISABLED = "disabled"  # at every server that runs now
    DISABLED_AT_SOME = "disabled at some"
    DISABLED_AFTER = "disabled after"  # by new files
    NOT_MAJORITIES = "not majorities"
    ADDRESSES = "addresses"
    TOO_FEW_VOTERS = "too few voters"
    NO_CLIENT_ADDRESS = "no client address"


@dataclass(frozen=True)
class Refusal:
    """An obstacle, and the servers that it is about, ascending; none if it is about all of them."""

    obstacle: Obstacle
    sids: tuple[Sid, ...] = ()


def refusals(old: Folder, new: Folder, stage: Stage) -> tuple[Refusal, ...]:
    """Every obstacle of a change of members; empty if ZooKeeper accepts its commands and they can be judged."""
    return tuple(_refusals(old, new, stage))


def _refusals(old: Folder, new: Folder, stage: Stage) -> Iterator[Refusal]:
    if stage.standalone:
        yield Refusal(Obstacle.STANDALONE)
        return
    disabled = _disabled(old)
    if disabled:
        every = len(disabled) == len(old.servers)
        yield Refusal(Obstacle.DISABLED if every else Obstacle.DISABLED_AT_SOME, disabled)
    if after := _disabled(new):
        yield Refusal(Obstacle.DISABLED_AFTER, after)
    if not isinstance(old.view.quorums, Majority) or not isinstance(new.view.quorums, Majority):
        yield Refusal(Obstacle.NOT_MAJORITIES)
    if stage.readdressed:
        yield Refusal(Obstacle.ADDRESSES, stage.readdressed)
    if len(new.view.voters) < 2:
        yield Refusal(Obstacle.TOO_FEW_VOTERS)
    known = member_lines(old, new)
    if unknown := tuple(sorted((old.view.members | new.view.members) - known.keys())):
        yield Refusal(Obstacle.NO_CLIENT_ADDRESS, unknown)


def _disabled(folder: Folder) -> tuple[Sid, ...]:
    return tuple(sid for sid, given in sorted(folder.servers.items()) if not given.config.reconfig_enabled)


def member_lines(old: Folder, new: Folder) -> dict[Sid, str]:
    """The value of the `server.N` line of each server, with its role and its client address.

    A line without a client address gets that of the server's own file. Without one there the server is left out.
    """
    found = {sid: _line_of(old, new, sid) for sid in sorted(old.servers.keys() | new.servers.keys())}
    return {sid: line for sid, line in found.items() if line is not None}


def _line_of(old: Folder, new: Folder, sid: Sid) -> str | None:
    """The line of a server as the others see it: its own file may have a wildcard as its host."""
    folder = new if sid in new.servers else old
    line = _as_others_see_it(folder.servers, sid)
    client = line.client or folder.servers[sid].config.client if line is not None else None
    if line is None or client is None:
        return None
    address = str(client.port) if client.host == ANY_ADDRESS else str(client)
    return f"{render_server(replace(line, client=None, secure_client=None))};{address}"


def _as_others_see_it(servers: Mapping[Sid, ServerFiles], sid: Sid) -> ServerLine | None:
    readers = sorted(servers, key=lambda reader: reader == sid)
    return next((line for each in readers if (line := servers[each].config.server(sid)) is not None), None)
