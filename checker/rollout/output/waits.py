"""The command that waits until a server serves in its new role.

It asks `srvr` at the client port. A server whose client port listens on its loopback address alone, as with Strimzi,
answers on its own machine only: there the command runs in its pod, or over ssh.
"""

from __future__ import annotations

import re
from shlex import quote

from checker.rollout.config_state import ConfigState
from spec.quorum import Sid
from spec.quorum.addresses import WILDCARDS, is_loopback

POD = re.compile(r"(?P<pod>[a-z0-9-]+)\.[a-z0-9-]+\.(?P<namespace>[A-Za-z0-9-]+)\.svc(?:\..*)?")
"""The host name of a pod of a StatefulSet."""
IN_POD = "exec 3<>/dev/tcp/127.0.0.1/{port}; echo srvr >&3; cat <&3"
"""The question without a program that an image may lack."""


def wait_command(new: ConfigState, sid: Sid) -> str:
    """A command that ends when a server serves in its new role. It only reads."""
    mode = "observer" if sid in new.view.observers else "(leader|follower)"
    mode = "standalone" if new.view.standalone else mode
    return f"until {_question(new, sid)} | grep -Eq 'Mode: {mode}'; do sleep 1; done"


def _question(new: ConfigState, sid: Sid) -> str:
    """A command that prints the answer of a server to `srvr`."""
    client, hosts = new.servers[sid].config.client, sorted(new.hosts(sid) - WILDCARDS)
    host, port = quote(hosts[0]) if hosts else "HOST", client.port if client is not None else 2181
    if client is None or not is_loopback(client.host) or is_loopback(host):
        return f"echo srvr | nc {host} {port}"
    pod = POD.fullmatch(host)
    if pod is not None:
        return f'kubectl exec -n {pod["namespace"]} {pod["pod"]} -- bash -c "{IN_POD.format(port=port)}"'
    return f"ssh {host} 'echo srvr | nc 127.0.0.1 {port}'"
