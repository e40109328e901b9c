"""The command that waits until a server serves in its new role, and the one question that it asks.

The question is a shell function that the reader pastes once, and that each step calls with the address of its server:

    a pod                        `srvr` in the pod, since only pods know its name
    a client port                `srvr` there; over ssh where it listens on its loopback address alone, as with Strimzi
    a secure client port only    the AdminServer; without one `srvr` by TLS

On 3.9.5 `srvr` is answered at a secure client port, too, and a server that does not serve names no state at its
AdminServer (both tried).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from shlex import quote

from checker.rollout.config_state import ConfigState
from checker.rollout.inputs.folders import settings
from spec.quorum import Sid
from spec.quorum.addresses import WILDCARDS, is_loopback

POD = re.compile(r"(?P<stem>[a-z0-9-]+)-(?P<ordinal>[0-9]+)\.[a-z0-9-]+\.(?P<namespace>[A-Za-z0-9-]+)\.svc(?:\..*)?")
"""The host name of a pod of a StatefulSet."""
ROLES = "(leader|follower)"
USUAL_PORT, ADMIN_PORT = "2181", "8080"
MODE, STATE = "Mode: ", "server_state.*"
LEADS = {MODE: "`Mode: leader`", STATE: "`leader` in `server_state`"}
"""The words of a leader in the answer to a question, by its mark."""


@dataclass(frozen=True)
class ServerQuestion:
    """A shell function that waits. `asks` prints an answer where `mark` is before the role of the server.

    The arguments of the function say which server. `assumes` is a remark for the reader, a sentence or more.
    """

    name: str
    asks: str
    arguments: int = 2
    mark: str = MODE
    assumes: str = ""

    @property
    def function(self) -> str:
        """The function; its last argument is the role, and a voter needs none."""
        role = f"${{{self.arguments + 1}:-{ROLES}}}"
        return f'{self.name}() {{ until {self.asks} | grep -Eq "{self.mark}{role}"; do sleep 1; done; }}'


AT_PORT = ServerQuestion("serves", 'echo srvr | nc "$1" "$2"')
BY_SSH = ServerQuestion("serves_by_ssh", 'ssh "$1" "echo srvr | nc 127.0.0.1 $2"')
TLS = 'echo srvr | openssl s_client -quiet {}-connect "$1:$2" 2>/dev/null'
NO_PORT = "There is no `clientPort`, so the wait asks the"


@dataclass(frozen=True)
class Wait:
    """A call that ends when a server serves in its new role. It only reads."""

    question: ServerQuestion
    call: str


def wait_of(new: ConfigState, sid: Sid) -> Wait:
    """The wait for a server with its new file."""
    client, hosts = new.servers[sid].config.client, sorted(new.hosts(sid) - WILDCARDS)
    host, values = quote(hosts[0]) if hosts else "HOST", settings(new.servers[sid])
    port = USUAL_PORT if client is None else str(client.port)
    question, place = AT_PORT, [host, port]
    if client is None and "secureClientPort" in values:
        question, port = _secure(values, host)
        place = [host, port]
    if pod := POD.fullmatch(host):
        question, place = _in_pod(question, port, pod["stem"], pod["namespace"]), [pod["ordinal"]]
    elif client is not None and is_loopback(client.host) and not is_loopback(host):
        question = BY_SSH
    role = ["standalone"] if new.view.standalone else ["observer"] if sid in new.view.observers else []
    return Wait(question, " ".join((question.name, *place, *role)))


def _secure(values: Mapping[str, str], host: str) -> tuple[ServerQuestion, str]:
    """The question to a server with a secure client port only, and the port."""
    admin = values.get("admin.serverAddress", "")
    if values.get("admin.enableServer", "true").lower() == "true" and (not is_loopback(admin) or is_loopback(host)):
        scheme = "https" if values.get("admin.forceHttps", "").lower() == "true" else "http"
        asks, port = f'curl -sk "{scheme}://$1:$2/commands/srvr"', values.get("admin.serverPort", ADMIN_PORT)
        return ServerQuestion(f"serves_by_{scheme}", asks, mark=STATE, assumes=f"{NO_PORT} AdminServer."), port
    port = values["secureClientPort"]
    if values.get("ssl.clientAuth", "need").lower() != "need":
        return ServerQuestion("serves_by_tls", TLS.format(""), assumes=f"{NO_PORT} secure port."), port
    own = f"{NO_PORT} secure port. `CLIENT.pem` is a certificate that servers trust, with its key."
    return ServerQuestion("serves_by_certificate", TLS.format("-cert CLIENT.pem -key CLIENT.pem "), assumes=own), port


def _in_pod(question: ServerQuestion, port: str, stem: str, namespace: str) -> ServerQuestion:
    """The question in a pod of a StatefulSet, whose argument is the ordinal. `srvr` needs no program but bash."""
    asks = f"exec 3<>/dev/tcp/127.0.0.1/{port}; echo srvr >&3; cat <&3"
    if question is not AT_PORT:
        asks = question.asks.replace('"', "").replace("$1", "127.0.0.1").replace("$2", port)
    name = f"{question.name}_{stem.replace('-', '_')}{'' if port == USUAL_PORT else f'_{port}'}"
    pod = f'kubectl exec -n {namespace} "{stem}-$1" -- bash -c "{asks}"'
    return ServerQuestion(name, pod, arguments=1, mark=question.mark, assumes=question.assumes)
