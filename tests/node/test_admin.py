"""The AdminServer and the metrics of live nodes, field by field as recorded from a real ensemble of 3.9.5.

The recording (tests/unit/golden/admin) has the fields and the types of each command's answer at a leader, a follower,
an observer and a standalone server, with the metrics of its Prometheus provider. Its server had Jetty 9.4.58 and
Jackson on the class path, and the provider of the tag release-3.9.5. What Java alone has (`jvm_*`) was left out.
"""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from checker.diagnose.report import diagnose
from harness import commands as c
from harness.ensemble import Ensemble
from harness.processes import LOOPBACK, free_ports
from harness.session import Session

RECORDED = json.loads((Path(__file__).parents[1] / "unit/golden/admin/zookeeper-3.9.5.json").read_text())
ROLES = ("leader", "follower", "observer", "standalone")
BUFFERS = {"last_buffer_size", "min_buffer_size", "max_buffer_size"}
LEFT_OUT = {
    "connections": set(),
    "environment": set(),
    "observers": {
        *("remote_socket_address", "established", "queued_packets", "queued_packets_size"),
        *("packets_received", "packets_sent", "requests"),
    },
    "server_stats": {
        *("client_response", "client_response_stats", "fsync_threshold_exceed_count"),
        *("non_mtlsremote_conn_count", "non_mtlslocal_conn_count"),
    },
    "zabstate": {
        *("reachable_address", "all_reachable_addresses", "all_reachable_addresses_or_all", "reachable_or_one"),
    },
}
"""The fields that a node has no figure for (docs/reference-node.md)."""
LEFT_OUT["stats"] = LEFT_OUT["server_stats"]
MORE = {"environment": {"python.version"}}
"""The fields that a node has in addition."""
PROVIDER = "org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider"


class Admin:
    """A server's two ports, as an operator's tools use them. It serves since `serving_since`, or longer."""

    def __init__(self, admin: int, metrics: int) -> None:
        self._admin, self._metrics = admin, metrics
        self.serving_since = time.monotonic()

    @property
    def address(self) -> str:
        """The address of the AdminServer, as an input of a diagnosis."""
        return f"http://{LOOPBACK}:{self._admin}"

    def ask(self, command: str) -> tuple[int, Any]:
        """The status and the JSON of a command."""
        status, body = _get(f"{self.address}/commands/{command}")
        return status, json.loads(body)

    def index(self) -> str:
        return _get(f"http://{LOOPBACK}:{self._admin}/commands")[1]

    def metrics(self) -> str:
        return _get(f"http://{LOOPBACK}:{self._metrics}/metrics")[1]


def _get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def _keys(admin: int, metrics: int) -> dict[str, str]:
    return {
        "admin.enableServer": "true",
        "admin.serverPort": str(admin),
        "metricsProvider.className": PROVIDER,
        "metricsProvider.httpPort": str(metrics),
        "DigestAuthenticationProvider.superDigest": "super:xQJmxLMiHGwaqBvst5y6rkB6HQs=",
    }


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Admin]]:
    """A leader and a follower with a client that watches, an observer and a standalone server, each with its ports."""
    ports = free_ports(8)
    three = Ensemble(["node"] * 3, tmp_path_factory.mktemp("three"), observers=[3])
    alone = Ensemble(["node"], tmp_path_factory.mktemp("alone"), standalone=True, extra=_keys(ports[0], ports[1]))
    try:
        for sid in three.sids:
            three.set_keys(sid, _keys(*ports[2 * sid : 2 * sid + 2]))
        for sid in (2, 1):
            three.start(sid)
        three.wait_serving()
        three.start_all()
        alone.start_all()
        found = {three.role(sid): Admin(*ports[2 * sid : 2 * sid + 2]) for sid in three.sids}
        sessions = [Session(20_000), Session(20_000)]
        for sid, session in zip((2, 1), sessions, strict=True):
            session.connect(three.client_port(sid))
            session.ask(c.CREATE2, "/a", b"x", c.OPEN, c.EPHEMERAL)
            session.ask(4, "/a", True)
        yield {"standalone": Admin(ports[0], ports[1]), **{str(role): admin for role, admin in found.items()}}
        for session in sessions:
            session.close()
    finally:
        three.shut_down()
        alone.shut_down()


def _fields(value: Any, left_out: set[str]) -> Any:
    """The names of all fields with the types of their values, as the recording has them; dots in names are kept."""
    if isinstance(value, dict):
        return {name: _fields(each, left_out) for name, each in value.items() if name not in left_out}
    if isinstance(value, list):
        return [_fields(value[0], left_out)] if value else []
    return None if value is None else {bool: "boolean", str: "string"}.get(type(value), "number")


def _recorded(value: Any, left_out: set[str]) -> Any:
    if isinstance(value, dict):
        return {name: _recorded(each, left_out) for name, each in value.items() if name not in left_out}
    return [_recorded(each, left_out) for each in value] if isinstance(value, list) else value


def _anonymous(fields: Any) -> Any:
    """The fields without the names that are ids of sessions and times."""
    if not isinstance(fields, dict):
        return fields
    return {"*" if name.lstrip("-").isdigit() else name: _anonymous(each) for name, each in fields.items()}


@pytest.mark.parametrize("role", ROLES)
def test_every_command_has_the_recorded_fields(servers: dict[str, Admin], role: str) -> None:
    different = {}
    for command, recorded in RECORDED["commands"][role].items():
        name = command.partition("?")[0]
        if name in {"snapshot", "monitor", "system_properties"}:
            continue
        status, body = servers[role].ask(command)
        left_out, more = LEFT_OUT.get(name, set()), MORE.get(name, set())
        ours, theirs = (
            _anonymous(each) for each in (_fields(body, left_out | more), _recorded(recorded["body"], left_out))
        )
        if (status, ours) != (recorded["status"], theirs):
            different[command] = (ours, theirs)
    assert not different


def test_monitor_has_only_recorded_names(servers: dict[str, Admin]) -> None:
    for role in ROLES:
        recorded = RECORDED["commands"][role]["monitor"]["body"]
        _, body = servers[role].ask("monitor")
        assert body.keys() <= recorded.keys(), role
        assert {"znode_count", "watch_count", "server_state", "uptime"} <= body.keys()
        assert ("learners" in body) is (role == "leader")


def test_the_metrics_are_well_formed_and_have_recorded_names_and_types(servers: dict[str, Admin]) -> None:
    for role in ROLES:
        recorded = RECORDED["metrics"][role]
        families = list(text_string_to_metric_families(servers[role].metrics()))
        # The parser gives counters the ending that OpenMetrics demands.
        names = {family.name: family for family in families}
        ours = {name if name in recorded else f"{name}_total": family.type for name, family in names.items()}
        assert {name: recorded.get(name) for name in ours} == ours, role
        assert {"znode_count", "num_alive_connections", "process_resident_memory_bytes"} <= ours.keys()


def test_figures_are_those_of_the_server(servers: dict[str, Admin]) -> None:
    _, body = servers["leader"].ask("watches_by_path")
    (session,) = body["path_to_session_ids"]["/a"]
    _, dump = servers["leader"].ask("dump")
    assert dump["session_id_to_ephemeral_paths"] == {str(session): ["/a"]}
    assert session in [each for ids in dump["expiry_time_to_session_ids"].values() for each in ids]
    _, leader = servers["follower"].ask("leader")
    assert (leader["is_leader"], leader["leader_id"], leader["leader_ip"]) == (False, 2, LOOPBACK)
    _, state = servers["observer"].ask("zabstate")
    assert (state["voting"], state["zabstate"], state["myid"]) == (False, "broadcast", 3)
    assert servers["leader"].ask("observers")[1]["synced_observers"] == 1


def test_the_uptime_of_a_leader_counts_from_its_election(servers: dict[str, Admin]) -> None:
    """It does not count from the first question."""
    served = int((time.monotonic() - servers["leader"].serving_since) * 1000)
    assert servers["leader"].ask("monitor")[1]["leader_uptime"] >= served


def test_the_index_links_every_command_that_is_offered(servers: dict[str, Admin]) -> None:
    text = servers["leader"].index()
    missing = [name for name in RECORDED["index"] if f'<a href="/commands/{name}">{name}</a>' not in text]
    assert missing == ["restore", "snapshot"]
    assert servers["leader"].ask("snapshot")[0] == 501


def test_a_password_is_not_shown(servers: dict[str, Admin]) -> None:
    _, body = servers["leader"].ask("system_properties")
    assert body["zookeeper.DigestAuthenticationProvider.superDigest"] == "(hidden)"
    assert body["zookeeper.admin.enableServer"] == "true"


def test_a_diagnosis_reads_who_leads_whom(servers: dict[str, Admin]) -> None:
    addresses = ",".join(servers[role].address for role in ("leader", "follower", "observer"))
    situation = diagnose([addresses]).situation
    assert (situation.leaders, situation.serving, situation.has_quorum) == ((2,), (1, 2, 3), True)
    assert situation.followed == {1: 2, 2: 2, 3: 2}
    (alone,) = diagnose([servers["standalone"].address]).situation.servers
    assert (alone.mode, alone.view) == ("standalone", None)
