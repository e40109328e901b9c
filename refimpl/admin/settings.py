"""The settings of the AdminServer and of the Prometheus metrics in zoo.cfg, with ZooKeeper's defaults.

Rules this module keeps:

- An address that the file does not name is loopback; ZooKeeper would listen on all interfaces.
- A key that asks for TLS at the AdminServer is an error, never ignored.

Source: `JettyAdminServer`, `AdminServerFactory`, `PrometheusMetricsProvider.configure`.
"""

import msgspec

from spec.config import Address
from spec.config.problems import is_true
from spec.text import INT, integer

LOOPBACK = "127.0.0.1"
PROMETHEUS = "org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider"
WITHOUT_PORT = frozenset(
    {
        "org.apache.zookeeper.metrics.impl.DefaultMetricsProvider",
        "org.apache.zookeeper.metrics.impl.NullMetricsProvider",
    }
)
"""The providers that open no port."""
_REFUSED = ("admin.portUnification", "admin.forceHttps", "admin.needClientAuth")


class AdminError(ValueError):
    """A setting of the AdminServer or of the metrics is invalid; the message names the key, the fault, the remedy."""


class AdminSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The addresses of both ports, None for a port that is not opened; `idle` is in milliseconds."""

    admin: Address | None = None
    url: str = "/commands"
    idle: int = 30_000
    metrics: Address | None = None

    @classmethod
    def of(cls, properties: dict[str, str]) -> "AdminSettings":
        """Reads the keys of zoo.cfg. Raises AdminError."""
        for key in _REFUSED:
            if is_true(properties, key):
                raise AdminError(f"{key}=true: TLS at the AdminServer is not supported; put a TLS proxy before it")
        admin = None
        if is_true(properties, "admin.enableServer", otherwise="true"):
            port = _number(properties, "admin.serverPort", 8080)
            admin = Address(properties.get("admin.serverAddress", LOOPBACK), port)
        url = properties.get("admin.commandURL", "/commands").rstrip("/")
        if not url.startswith("/"):
            raise AdminError(f"admin.commandURL={url}: not a path; write one such as /commands")
        provider = properties.get("metricsProvider.className")
        if provider is not None and provider not in WITHOUT_PORT and provider != PROMETHEUS:
            raise AdminError(f"metricsProvider.className={provider}: no such provider; write {PROMETHEUS}")
        metrics = None
        if provider == PROMETHEUS:
            port = _number(properties, "metricsProvider.httpPort", 7000)
            metrics = Address(properties.get("metricsProvider.httpHost", LOOPBACK), port)
        idle = _number(properties, "admin.idleTimeout", 30_000, most=(1 << 31) - 1, least=1)
        return cls(admin=admin, url=url, idle=idle, metrics=metrics)


def _number(properties: dict[str, str], key: str, default: int, most: int = 65535, least: int = 0) -> int:
    text = properties.get(key)
    number = default if text is None else integer(text, *INT)
    if number is None or not least <= number <= most:
        raise AdminError(f"{key}={text}: not a number from {least} to {most}; write one")
    return number
