"""A pytest plugin that gives kazoo's test-suite other servers than the ones it starts itself.

kazoo's `kazoo.testing.common` starts Java from an unpacked release, with key stores that a library makes. Here
`ManagedZooKeeper.run` starts a given command instead, so that the same tests reach our node and any real release.

Rules of this module:

- It runs in the Python of the test-suite, so it needs the standard library and kazoo only.
- Both kinds of server get the same `zoo.cfg`. What kazoo passes as a property of Java is one for a real server, and a
  key of `zoo.cfg` for a node.
- Servers listen on the loopback interface only.

Source: kazoo 2.11.0, `kazoo.testing.common` and `kazoo.testing.harness`.
"""

import importlib
import json
import os
import subprocess
import tempfile
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

SERVER = "QUORATE_KAZOO_SERVER"
"""The environment variable with the server to start, as JSON: see `ServerCommand` of `harness.kazoo_suite.run`."""
PROPERTIES = "@properties"
"""The part of a command that the properties of Java replace; the path of the file replaces `CONFIG`."""
CONFIG = "@config"
LOOPBACK = "127.0.0.1"


def pytest_configure() -> None:
    """Replace kazoo's control of servers, before any test module is imported."""
    common: Any = importlib.import_module("kazoo.testing.common")
    common.ManagedZooKeeper.run = _run
    common.ZookeeperCluster.perform_ssl_certs_generation = _make_certificates


def _run(server: Any) -> None:
    if server.running:
        return
    home = Path(server.working_path)
    (home / "data").mkdir(parents=True, exist_ok=True)
    (home / "data" / "myid").write_text(f"{server.server_info.server_id}\n", encoding="ascii")
    (home / "jaas.conf").write_text(server.jaas_config or "", encoding="utf-8")
    for name, pem in server.ssl_configuration["stores"].items():
        (home / name).write_bytes(pem)
    launch = json.loads(os.environ[SERVER])
    properties = {"readonlymode.enabled": "true"}
    for option in server.java_system_properties:
        name, _, value = option.removeprefix("-D").partition("=")
        properties[name] = value
    if server.jaas_config:  # only then the file has a section for servers
        properties["java.security.auth.login.config"] = str(home / "jaas.conf")
    text = "".join(line + "\n" for line in _lines(server, home))
    if PROPERTIES not in launch["command"]:
        text += "".join(f"{name.removeprefix('zookeeper.')}={value}\n" for name, value in properties.items())
    config = home / "zoo.cfg"
    config.write_text(text, encoding="utf-8")
    replaced = {PROPERTIES: [f"-D{name}={value}" for name, value in properties.items()], CONFIG: [str(config)]}
    command = [word for part in launch["command"] for word in replaced.get(part, [part])]
    with (home / "zookeeper.log").open("ab") as log:
        server.process = subprocess.Popen(
            command,
            cwd=home,
            env=os.environ | launch["environment"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    server._running = True


def _lines(server: Any, home: Path) -> Iterable[str]:
    """The lines of `zoo.cfg`, as kazoo writes them, but with PEM files and loopback addresses."""
    info = server.server_info
    yield "tickTime=2000"
    yield f"dataDir={home / 'data'}"
    yield f"clientPort={info.client_port}"
    yield f"clientPortAddress={LOOPBACK}"
    yield f"secureClientPort={info.secure_client_port}"
    yield f"secureClientPortAddress={LOOPBACK}"
    yield "maxClientCnxns=0"
    yield "admin.enableServer=false"
    yield "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory"
    yield "authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider"
    for key, name in (("keyStore", "key.pem"), ("trustStore", "trust.pem")):
        yield f"ssl.{key}.location={home / name}"
        yield f"ssl.{key}.type=PEM"
    yield from server.configuration_entries
    if server.peers:
        yield "initLimit=4"
        yield "syncLimit=2"
        for peer in chain((info,), server.peers):
            yield f"server.{peer.server_id}={LOOPBACK}:{peer.leader_port}:{peer.election_port}:{peer.peer_type}"
        yield f"peerType={info.peer_type}"


def _make_certificates(cluster: Any) -> None:
    """One self-signed certificate for servers and clients, which both of them trust, made by `openssl`."""
    if cluster._ssl_configuration:
        return
    with tempfile.TemporaryDirectory() as folder:
        key, certificate = Path(folder, "key"), Path(folder, "certificate")
        make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
        names = ["-addext", f"subjectAltName=DNS:localhost,IP:{LOOPBACK}"]
        subprocess.run([*make, *names, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
        private, public = key.read_bytes(), certificate.read_bytes()
    cluster._ssl_configuration = {
        "stores": {"key.pem": private + public, "trust.pem": public},
        "client_key_pem": private,
        "client_cert_pem": public,
        "ca_cert_pem": public,
    }
