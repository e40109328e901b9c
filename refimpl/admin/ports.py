"""The two ports for operators of one server, and its metrics in the text format of Prometheus.

Rules of this module:

- A port of the AdminServer that cannot be opened is a warning, and the server runs without it;
  a port of the metrics that cannot be opened is an error.
- A metric has the name and the type that ZooKeeper 3.9.5 exposes. Only figures that this server has are exposed, and
  none that is text.
- While the server does not serve, only the figures of the process are exposed.

Source: `QuorumPeer.startServer` (a failing AdminServer), `QuorumPeerMain.runFromConfig` (a failing provider);
`PrometheusMetricsProvider`; the text format 0.0.4 of Prometheus.
"""

import logging
from collections.abc import Iterator
from functools import partial

from refimpl.admin.commands import answer_command
from refimpl.admin.http import TEXT, HttpAnswer, HttpPort, HttpRequest
from refimpl.admin.view import AdminView, process_figures
from refimpl.listening import ListenError, SmallShare
from refimpl.settings import AdminSettings

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
COUNTERS = frozenset({"connection_rejected", "digest_mismatches_count"})
"""The figures that only grow, as ZooKeeper types them: what `srst` sets to zero is a gauge."""


def answer_metrics(view: AdminView, request: HttpRequest) -> HttpAnswer:
    """The answer to a scrape."""
    if request.path != "/metrics":
        return HttpAnswer(404, TEXT, b"the metrics are at /metrics\n")
    return HttpAnswer(200, CONTENT_TYPE, "".join(exposition(view)).encode())


def exposition(view: AdminView) -> Iterator[str]:
    """The metrics, each with its type."""
    backend = view.backend
    if backend is not None:
        for name, value in view.figures(backend).items():
            if not isinstance(value, str):
                yield _metric(name, value, "counter" if name in COUNTERS else "gauge", name)
    for name, value, kind, text in process_figures():
        yield _metric(name, value, kind, text)


def _metric(name: str, value: float, kind: str, text: str) -> str:
    return f"# HELP {name} {text}\n# TYPE {name} {kind}\n{name} {float(value)!r}\n"


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
        """Close the ports and their connections."""
        for port in self._open:
            port.close()
