"""The commands of an operator: the steps of a StatefulSet by `kubectl`, and the wait for a server.

Two sorts of steps exist. Where the controller takes them, a stage is one manifest that is applied, and a command that
waits for the controller. Where a person takes them, the strategy is OnDelete: no pod restarts alone, `kubectl
scale` starts or stops the last pod, and a pod that is deleted comes back with the new template.

Rules of this module: a strategy that is changed by `kubectl apply` alone is refused, since the API server has set
`rollingUpdate`; so it is patched first. A pod that hangs is not replaced when an older template is applied. The way
back from a stage leads to the state before that stage: the manifest of the first state would undo several at once.

Source: Kubernetes, "StatefulSets": Update Strategies, Partitions, Forced rollback; `ValidateStatefulSetSpec`.

A command waits until a server serves in its new role. Its question is a shell function that the reader pastes once, and
that each step calls with the address of its server:

    a pod                        `srvr` in the pod, since only pods know its name
    a client port                `srvr` there; over ssh where it listens on its loopback address alone, as with Strimzi
    a secure client port only    the AdminServer; without one `srvr` by TLS

On 3.9.5 `srvr` is answered at a secure client port, too, and a server that does not serve names no state at its
AdminServer (both tried).
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from shlex import quote

from checker.printable import code, fenced
from checker.rollout.answer import Plan
from checker.rollout.config_state import ConfigState
from checker.rollout.files.differences import masked
from checker.rollout.inputs.folders import settings
from checker.rollout.inputs.platform import NOT_LISTED, MemberList, UpdateStrategy, WayOfWorking
from checker.rollout.inputs.sources import STREAMS
from checker.rollout.orders import RESTART, START, ServerStep, Way
from checker.rollout.output.sentences import row_of, servers
from checker.rollout.route_verdict import PlanRoute
from spec.quorum import Sid
from spec.quorum.addresses import WILDCARDS, is_loopback

POD = re.compile(r"([a-z0-9-]+)-([0-9]+)\.[a-z0-9-]+\.(?:namespace|([a-z0-9-]+))\.svc(?:\..*)?", re.IGNORECASE)
"""The host name of a pod of a StatefulSet: its name, the ordinal, and the namespace if the manifest states one."""
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
NO_CLIENTS = ServerQuestion(
    "serves_clients",
    AT_PORT.asks,
    assumes="**A file has neither a `clientPort` nor a client address**: its server listens for no client, and the wait"
    " has no end. Add `clientPort` to the file.",
)
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
    files, hosts = new.servers[sid], sorted(new.hosts(sid) - WILDCARDS)
    client, values = next(iter(files.clients), None), settings(files)
    host = quote(hosts[0]) if hosts else "HOST"
    port = USUAL_PORT if client is None else str(client.port)
    question, place = AT_PORT, [host, port]
    if client is None and "secureClientPort" in values:
        question, port = _secure(values, host)
        place = [host, port]
    elif client is None and files.states("clientPort"):
        question = NO_CLIENTS
    if pod := POD.fullmatch(host):
        question, place = _in_pod(question, port, pod[1], pod[3]), [pod[2]]
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
    need = f"{NO_PORT} secure port. `CLIENT.pem` is a certificate that servers trust, with its key."
    return ServerQuestion("serves_by_certificate", TLS.format("-cert CLIENT.pem -key CLIENT.pem "), assumes=need), port


def _in_pod(question: ServerQuestion, port: str, stem: str, namespace: str | None) -> ServerQuestion:
    """The question in a pod of a StatefulSet, whose argument is the ordinal. `srvr` needs no program but bash."""
    asks = f"exec 3<>/dev/tcp/127.0.0.1/{port}; echo srvr >&3; cat <&3"
    if question.asks != AT_PORT.asks:
        asks = question.asks.replace('"', "").replace("$1", "127.0.0.1").replace("$2", port)
    name = f"{question.name}_{stem.replace('-', '_')}{'' if port == USUAL_PORT else f'_{port}'}"
    pod = f'kubectl exec{f" -n {namespace}" if namespace else ""} "{stem}-$1" -- bash -c "{asks}"'
    return ServerQuestion(name, pod, arguments=1, mark=question.mark, assumes=question.assumes)


ON_DELETE = {"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": None}}}
LAST_POD = "**A StatefulSet cannot take these steps**: it starts and stops its last pod only."
COPY = "NEW.yaml"
HANGS = "Delete a pod that hangs: the StatefulSet does not replace it by itself."


@dataclass(frozen=True)
class StatefulSet:
    """A StatefulSet, with the ordinals of the pods of its servers, before and after the change."""

    name: str
    namespace: str
    ordinals: Mapping[Sid, int]
    patched: bool
    listing: MemberList
    old: str
    new: str

    @classmethod
    def of_plan(cls, plan: Plan) -> StatefulSet | None:
        """The StatefulSet that the input states; None without one, and where a program makes the change itself."""
        old, new = plan.request.old.working or WayOfWorking(), plan.request.new.working
        if new is None or not new.stateful_set or new.operator is not None:
            return None
        patched = new.updates is not UpdateStrategy.ON_DELETE
        listing = new.listing if old.listing == new.listing else NOT_LISTED
        files = _file(plan.request.old.path, "OLD.yaml"), _file(plan.request.new.path, COPY)
        return cls(new.stateful_set, new.namespace, {**old.ordinals, **new.ordinals}, patched, listing, *files)

    def with_pods(self, sids: Collection[Sid]) -> str:
        """The servers with the ordinals of their pods, which the waits have: `server 4 (pod 3)`."""
        ordinals = sorted(self.ordinals[sid] for sid in sids)
        return f"{servers(sids)} (pod{'s' * (len(sids) > 1)} {row_of(ordinals)})"

    def takes(self, part: PlanRoute) -> bool:
        """Whether it can take the steps of a stage: it starts and stops its last pod only."""
        running = {self.ordinals[sid] for sid in part.stage.running}
        for step in part.orders[0].steps if part.orders else ():
            if step.action != RESTART and self.ordinals[step.sid] != len(running) - (step.action != START):
                return False
            changed = {self.ordinals[step.sid]} if step.action != RESTART else set()
            running = running ^ changed
        return True

    @property
    def _at(self) -> str:
        return f" -n {quote(self.namespace)}" if self.namespace else ""

    def command(self, step: ServerStep) -> str:
        """The command of a step that a person takes."""
        ordinal = self.ordinals[step.sid]
        if step.action == RESTART:
            return f"kubectl delete pod{self._at} {self.name}-{ordinal}"
        return f"kubectl scale{self._at} {self._object} --replicas={ordinal + (step.action == START)}"

    def preparation(self, part: PlanRoute) -> list[str]:
        """The commands before the first step of a stage, so that no pod restarts alone."""
        patched = ["No pod may restart by itself:", "", *fenced(self._patch(self._object, ON_DELETE), ""), ""]
        strategy = ", `updateStrategy: {type: OnDelete}`" if self.patched else ""
        return [*(patched if self.patched else []), *self._apply(part, len(part.stage.running), strategy), ""]

    def edits(self, part: PlanRoute, replicas: int) -> list[str]:
        """The commands that give the present objects the servers of a stage between.

        Empty for the last stage, which has a manifest, and where one template cannot have the files of all servers.
        """
        files, listing, template = next(iter(part.stage.new.servers.values())), self.listing, dict[str, object]()
        several = len({(f.text, f.dynamic) for f in part.stage.new.servers.values()}) > 1
        if part.stage.new.given or several or masked(files.text) != files.text:
            return []
        commands = list[str]()
        if listing.config_map:
            data = {"zoo.cfg": files.text}
            if files.dynamic is not None:
                data[PurePosixPath(files.config.dynamic_config_file or "").name] = files.dynamic
            commands = [self._patch(f"configmap/{listing.config_map} --type merge", {"data": data})]
            # A new annotation is a new template, with which the controller restarts the pods.
            template = {"metadata": {"annotations": {"quorate/stage": part.stage.new.label}}}
        elif listing.container:
            value = listing.value({sid: settings(files)[f"server.{sid}"] for sid in part.stage.new.members})
            env = [{"name": listing.variable, "value": value}]
            template = {"spec": {"containers": [{"name": listing.container, "env": env}]}} if value else {}
        patch = self._patch(self._object, {"spec": {"replicas": replicas, "template": template}})
        return [*commands, patch] if template else []

    @property
    def _object(self) -> str:
        return f"statefulset/{self.name}"

    def _patch(self, target: str, patch: Mapping[str, object]) -> str:
        return f"kubectl patch{self._at} {target} -p {quote(json.dumps(patch))}"

    def _apply(self, part: PlanRoute, replicas: int, strategy: str = "") -> list[str]:
        if edits := self.edits(part, replicas):
            return ["Set the servers of this stage:", "", *fenced("\n".join(edits), "")]
        words = f"with `replicas: {replicas}`{strategy}{'' if part.stage.new.given else ' and the servers above'}"
        if strategy or not part.stage.new.given or replicas != len(part.stage.new.members):
            return [f"Apply a copy of the new manifest {words}: {self._applied(COPY)}."]
        return [f"Apply the new manifest {words}: {self._applied(self.new)}."]

    def _applied(self, file: str) -> str:
        return code(f"kubectl apply{self._at} -f {quote(file)}")

    @property
    def _restart(self) -> str:
        return code(f"kubectl rollout restart{self._at} {self._object}")

    def way_back(self, parts: Sequence[PlanRoute]) -> tuple[str, str]:
        """The way back from a stage, and the sentences that say how to go it."""
        alone, replicas = parts[0].way.is_of_controller, " with the present replicas"
        by_hand = f"{replicas} and OnDelete"
        command = self._applied(self.old)
        # The template of now has the annotation of a stage already, so its patch restarts no pod.
        restart = f" Then restart the pods: {self._restart}." if self.listing.config_map else ""
        how = f"{restart} {HANGS}" if alone else " Then undo the steps of this stage backwards."
        if len(parts) == 1 and not alone:
            return f"Or apply the old manifest{by_hand}, and undo the steps backwards", ""
        if len(parts) == 1:
            return f"Or apply the old manifest ({command})", how
        stage, before = ("stage 2", "stage 1") if len(parts) == 2 else ("a later stage", "the stage before it")
        later = f"repeat the patch of {before}{'' if alone else replicas}"
        # A patch of a variable changes the servers alone, and the last stage may change other keys.
        changes_more = not restart and any(not row.key.startswith("server.") for row in parts[-1].stage.differences)
        if changes_more or not all(self.edits(part, 0) for part in parts[:-1]):
            number = " with the `replicas`" if alone else by_hand
            later = f"apply the old manifest{number} and the servers of {before}"
        first = f"run {command}" if alone else f"apply the old manifest{by_hand}"
        how = f" In stage 1 {first}. In {stage} never do that: {later}.{how}"
        return "Or go back to the state before this stage", how

    def by_controller(self, part: PlanRoute) -> Iterator[str]:
        """The steps of a stage that the controller takes, by the highest ordinal first."""
        yield _item(self._apply(part, len(part.stage.new.members)))
        if part.stage.new.given and self.listing.config_map:
            # No file is part of a template.
            yield f"If its pod template is the one of now, restart the pods: {self._restart}"
        calls = [wait_of(part.stage.new, sid).call for sid in sorted(part.stage.new.members)]
        status = f"kubectl rollout status{self._at} {self._object}"
        yield _item(["Wait for controller and servers:", "", *fenced(f"{status}\n{_looped(calls)}", "")])

    def all_stopped(self, part: PlanRoute) -> Iterator[str]:
        """The steps if everything is stopped, and then started."""
        yield f"Stop all: {code(f'kubectl scale{self._at} {self._object} --replicas=0')}"
        yield _item(self._apply(part, len(part.stage.new.members)))

    def end(self, part: PlanRoute) -> list[str]:
        """The work after the last step."""
        by_person = not part.way.is_of_controller and part.way is not Way.STOP_ALL
        apply = f"Then apply the new manifest as it is: {self._applied(self.new)}. No pod restarts."
        return [apply, ""] if self.patched and by_person else []


def _file(path: str, name: str) -> str:
    """The file that the user gave; another name where it was a stream, which is gone."""
    return name if Path(path).parent in STREAMS else path


def _item(lines: list[str]) -> str:
    """The lines as an item of a list with numbers."""
    return "\n".join([lines[0], *(line and f"   {line}" for line in lines[1:])])


def _looped(calls: list[str]) -> str:
    """The calls, one a line; a loop where they differ in the ordinal alone."""
    words = [call.split() for call in calls]
    if len({(name, *role) for name, _, *role in words}) > 1:
        return "\n".join(calls)
    (name, _, *role), ordinals = words[0], " ".join(ordinal for _, ordinal, *_ in words)
    return f"for n in {ordinals}; do {' '.join((name, '$n', *role))}; done"
