"""The command that waits until a server serves in its new role.

It asks `srvr` at the client port. A server in a pod is asked there, since only pods know its name. A server whose
client port listens on its loopback address alone is asked on its own machine, over ssh. The question is a shell
function that the reader pastes once, and that each step calls with the address of its server.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from shlex import quote

from checker.rollout.config_state import ConfigState
from spec.quorum import Sid
from spec.quorum.addresses import WILDCARDS, is_loopback

POD = re.compile(r"(?P<stem>[a-z0-9-]+)-(?P<ordinal>[0-9]+)\.[a-z0-9-]+\.(?P<namespace>[A-Za-z0-9-]+)\.svc(?:\..*)?")
"""The host name of a pod of a StatefulSet."""
ROLES = "(leader|follower)"
USUAL_PORT = 2181


@dataclass(frozen=True)
class Question:
    """A shell function that waits. `asks` prints the answer of a server to `srvr`; its arguments say which server."""

    name: str
    asks: str
    arguments: int = 2

    @property
    def function(self) -> str:
        """The function; its last argument is the role, and a voter needs none."""
        role = f"${{{self.arguments + 1}:-{ROLES}}}"
        return f'{self.name}() {{ until {self.asks} | grep -Eq "Mode: {role}"; do sleep 1; done; }}'


AT_PORT = Question("serves", 'echo srvr | nc "$1" "$2"')
BY_SSH = Question("serves_by_ssh", 'ssh "$1" "echo srvr | nc 127.0.0.1 $2"')


def in_pod(stem: str, namespace: str, port: int) -> Question:
    """The question in a pod of a StatefulSet, whose argument is the ordinal. The image needs no program but bash."""
    ask = f"exec 3<>/dev/tcp/127.0.0.1/{port}; echo srvr >&3; cat <&3"
    name = f"serves_{stem.replace('-', '_')}{'' if port == USUAL_PORT else f'_{port}'}"
    return Question(name, f'kubectl exec -n {namespace} "{stem}-$1" -- bash -c "{ask}"', arguments=1)


@dataclass(frozen=True)
class Wait:
    """A call that ends when a server serves in its new role. It only reads."""

    question: Question
    call: str


def wait_of(new: ConfigState, sid: Sid) -> Wait:
    """The wait for a server with its new file."""
    client, hosts = new.servers[sid].config.client, sorted(new.hosts(sid) - WILDCARDS)
    host, port = quote(hosts[0]) if hosts else "HOST", USUAL_PORT if client is None else client.port
    question, place = AT_PORT, [host, str(port)]
    if pod := POD.fullmatch(host):
        question, place = in_pod(pod["stem"], pod["namespace"], port), [pod["ordinal"]]
    elif client is not None and is_loopback(client.host) and not is_loopback(host):
        question = BY_SSH
    role = ["standalone"] if new.view.standalone else ["observer"] if sid in new.view.observers else []
    return Wait(question, " ".join((question.name, *place, *role)))
