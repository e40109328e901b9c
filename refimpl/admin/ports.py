"""The two ports for operators of one server.

Rules this module keeps: a port of the AdminServer that cannot be opened is a warning, and the server runs without it;
a port of the metrics that cannot be opened is an error.

Source: `QuorumPeer.startServer` (a failing AdminServer), `QuorumPeerMain.runFromConfig` (a failing provider).
"""

from __future__ import annotations

import logging
from functools import partial

from refimpl.admin.commands import answer_command
from refimpl.admin.http import HttpPort
from refimpl.admin.metrics import answer_metrics
from refimpl.admin.settings import AdminSettings
from refimpl.admin.view import AdminView
from refimpl.listening import ListenError, SmallShare

logger = logging.getLogger("quorate.admin")


class AdminPorts:
    """The open ports; they close together."""

    def __init__(self, settings: AdminSettings, view: AdminView) -> None:
        self._open: list[HttpPort] = []
        idle, share = settings.idle / 1000, SmallShare()
        if settings.metrics is not None:
            metrics = HttpPort(settings.metrics, partial(answer_metrics, view), idle, share)
            try:
                metrics.listen()
            except (OSError, ValueError) as error:
                why = getattr(error, "strerror", None) or error
                raise ListenError(f"cannot listen for metrics at {settings.metrics}: {why}") from None
            self._open.append(metrics)
        if settings.admin is not None:
            admin = HttpPort(settings.admin, partial(answer_command, view, settings.url), idle, share, settings.url)
            try:
                admin.listen()
            except (OSError, ValueError) as error:
                why = getattr(error, "strerror", None) or error
                logger.warning("the AdminServer does not run: cannot listen at %s: %s", settings.admin, why)
            else:
                self._open.append(admin)

    def close(self) -> None:
        """Closes the ports and their connections."""
        for port in self._open:
            port.close()
