"""The configuration of a server, as its sockets, its tree, its clients and its files need it.

    active       the configuration in `dynamicConfigFile`, or in zoo.cfg itself
    last seen    the configuration in `zoo.cfg.dynamic.next`, which may become active

Rules of this module:

- The protocol decides (`spec.zab.reconfiguration`), and the node calls `activate` and `see` for its effects. The file
  is written before the method returns, so before the transaction is logged or applied.
- Members of both configurations can be reached. A server that leaves the configuration keeps its addresses.
- A file is written durably and completely, or the server stops: ZooKeeper logs the error and acknowledges.

Source: `QuorumPeer.setQuorumVerifier`, `setLastSeenQuorumVerifier`; `QuorumPeerConfig.writeDynamicConfig`,
`editStaticConfig`, `deleteFile`.
"""

import logging
from pathlib import Path

from msgspec.structs import replace

from refimpl.disk.files import DataError, replace_file, sync_directory
from refimpl.system import system
from spec.config import Ensemble, ServerLine, render_ensemble
from spec.config.dynamic_files import (
    active_file,
    ensemble_in,
    next_file,
    refers_to_dynamic_file,
    static_text,
    versioned_text,
    view_in,
)
from spec.quorum import Sid, View

logger = logging.getLogger("quorate.configuration")

BACKUP = ".bak"
"""The end of the name of the first zoo.cfg, which is kept when its servers move to a dynamic file."""


class Membership:
    """The active configuration of server `own`, and the one seen last; the files are those of `zoo_cfg`.

    `text` is the active configuration with its version, as packets and `/zookeeper/config` have it. `first_text` is
    that of the files without a version: a vote has it as long as the protocol knows no version. `servers` are the
    members of both configurations.
    """

    def __init__(self, zoo_cfg: Path, own: Sid, active: Ensemble, last_seen: View | None = None) -> None:
        self.zoo_cfg, self._own = zoo_cfg.absolute(), own
        self._active = active
        self.text = render_ensemble(active)
        self.first_text = render_ensemble(replace(active, view=replace(active.view, version=0)))
        self._last_seen, self._seen = last_seen, () if last_seen is None else ensemble_in(last_seen).servers

    @property
    def version(self) -> int:
        """The version of the active configuration, 0 without one."""
        return self._active.view.version

    @property
    def servers(self) -> dict[Sid, ServerLine]:
        """The members of both configurations, by id; the active line of a server counts."""
        return {server.sid: server for server in (*self._seen, *self._active.servers)}

    def activate(self, view: View) -> None:
        """Make a configuration the active one, in its file first. Raises OSError and DataError.

        One that was seen last, and is later, remains: the server may have acknowledged it.
        """
        ensemble, files = ensemble_in(view), self.files_with(view)
        before, after = (members.client_of(self._own) for members in (self._active, ensemble))
        if before is not None and after is not None and before != after:
            logger.warning("server %d: clients reach it at %s from its next start on", self._own, after)
        static = self._static()
        if not refers_to_dynamic_file(static):
            replace_file(system().path(f"{self.zoo_cfg}{BACKUP}"), [static.encode()], self._mode())
        for name, text in files.items():
            replace_file(system().path(name), [text.encode()], self._mode() if name == str(self.zoo_cfg) else None)
        self._active, self.text = ensemble, versioned_text(view)
        if self._last_seen is None or self._last_seen.version <= view.version:
            self._last_seen, self._seen = None, ()
            following = system().path(next_file(str(self.zoo_cfg)))
            if following.exists():
                following.unlink()
                sync_directory(following.parent)
        logger.info("server %d: configuration %x is active: %s", self._own, view.version, _listed(ensemble))

    def see(self, view: View) -> None:
        """Write the configuration that was seen last. Raises OSError."""
        replace_file(system().path(next_file(str(self.zoo_cfg))), [f"{versioned_text(view)}\n".encode()])
        self._last_seen, self._seen = view, ensemble_in(view).servers

    def files_with(self, view: View) -> dict[str, str]:
        """The dynamic file and zoo.cfg of an active view, texts by names. Raises OSError and DataError."""
        file = active_file(str(self.zoo_cfg), view.version)
        static = static_text(self._static(), file, ensemble_in(view).client_of(self._own))
        return {file: f"{view.text}\n", str(self.zoo_cfg): static}

    def _static(self) -> str:
        try:
            return self.zoo_cfg.read_text("utf-8")
        except UnicodeDecodeError as error:
            raise DataError(f"{self.zoo_cfg}: cannot be read: {error}; write it in UTF-8") from None

    def _mode(self) -> int:
        """The permissions of zoo.cfg, which may hold a digest that others must not read."""
        return self.zoo_cfg.stat().st_mode & 0o777


def read_next(zoo_cfg: Path, text: str, active: View) -> View | None:
    """The configuration in the text of `.dynamic.next`; None if it is not later than the active one.

    Raises ConfigError for a text that is no configuration.
    """
    view = view_in(text, next_file(str(zoo_cfg)))
    return view if view.version > active.version else None


def _listed(ensemble: Ensemble) -> str:
    observers = f"; observers {', '.join(map(str, sorted(ensemble.view.observers)))}" if ensemble.view.observers else ""
    return f"voters {', '.join(map(str, sorted(ensemble.view.voters)))}{observers}"
