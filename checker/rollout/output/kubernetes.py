"""The steps of a StatefulSet as `kubectl` commands, with the names of the manifest.

Two sorts of steps exist. Where the controller takes them, a stage is one manifest that is applied, and a command that
waits for the controller. Where a person takes them, the strategy is OnDelete: no pod restarts alone, `kubectl
scale` starts or stops the last pod, and a pod that is deleted comes back with the new template.

Rules of this module: a strategy that is changed by `kubectl apply` alone is refused, since the API server has set
`rollingUpdate`; so it is patched first. A pod that hangs is not replaced when the old manifest is applied.

Source: Kubernetes, "StatefulSets": Update Strategies, Partitions, Forced rollback; `ValidateStatefulSetSpec`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from shlex import quote

from checker.printable import code, fenced
from checker.rollout.answer import Plan
from checker.rollout.files.differences import masked
from checker.rollout.inputs.folders import settings
from checker.rollout.inputs.working import NOT_LISTED, MemberList, UpdateStrategy, WayOfWorking
from checker.rollout.output.waits import wait_of
from checker.rollout.route import PlanRoute
from checker.rollout.steps import RESTART, START, ServerStep
from checker.rollout.ways import Way
from spec.quorum import Sid

ON_DELETE = {"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": None}}}
LAST_POD = "**A StatefulSet cannot take these steps**: it starts and stops its last pod only."
BY_PERSON = "Or apply the old manifest with OnDelete and the present replicas, and undo the steps backwards"
GO_BACK = "Or apply the old manifest, and delete a pod that hangs, which no StatefulSet replaces"


@dataclass(frozen=True)
class StatefulSet:
    """A StatefulSet, with the ordinals of the pods of its servers, before and after the change."""

    name: str
    namespace: str
    ordinals: Mapping[Sid, int]
    patched: bool
    listing: MemberList

    @classmethod
    def of_plan(cls, plan: Plan) -> StatefulSet | None:
        """The StatefulSet that the input states; None without one, and where a program makes the change itself."""
        old, new = plan.request.old.working or WayOfWorking(), plan.request.new.working
        if new is None or not new.stateful_set or new.operator is not None:
            return None
        patched = new.updates is not UpdateStrategy.ON_DELETE
        listing = new.listing if old.listing == new.listing else NOT_LISTED
        return cls(new.stateful_set, new.namespace, {**old.ordinals, **new.ordinals}, patched, listing)

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
        several = any((own.text, own.dynamic) != (files.text, files.dynamic) for own in part.stage.new.servers.values())
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
            return ["Give the servers of this stage to the present objects:", "", *fenced("\n".join(edits), "")]
        servers = "" if part.stage.new.given else " and the servers above"
        command = code(f"kubectl apply{self._at} -f NEW.yaml")
        return [f"Apply the new manifest with `replicas: {replicas}`{strategy}{servers}: {command}."]

    def by_controller(self, part: PlanRoute) -> Iterator[str]:
        """The steps of a stage that the controller takes, by the highest ordinal first."""
        yield _item(self._apply(part, len(part.stage.new.members)))
        if part.stage.new.given and self.listing.config_map:
            restart = code(f"kubectl rollout restart{self._at} {self._object}")
            yield f"If its pod template is the one of now, restart the pods: {restart}"  # no file is part of a template
        yield f"Wait for the controller: {code(f'kubectl rollout status{self._at} {self._object}')}"
        calls = [wait_of(part.stage.new, sid).call for sid in sorted(part.stage.new.members)]
        yield _item(["Then wait until every server serves:", "", *_looped(calls)])

    def all_stopped(self, part: PlanRoute) -> Iterator[str]:
        """The steps if everything is stopped, and then started."""
        yield f"Stop all: {code(f'kubectl scale{self._at} {self._object} --replicas=0')}"
        yield _item(self._apply(part, len(part.stage.new.members)))

    def end(self, part: PlanRoute) -> list[str]:
        """The work after the last step."""
        by_person = not part.way.is_of_controller and part.way is not Way.STOP_ALL
        return ["Then apply the new manifest as it is: no pod restarts.", ""] if self.patched and by_person else []


def _item(lines: list[str]) -> str:
    """The lines as an item of a list with numbers."""
    return "\n".join([lines[0], *(line and f"   {line}" for line in lines[1:])])


def _looped(calls: list[str]) -> list[str]:
    """The calls as a block; a loop where they differ in the ordinal alone."""
    words = [call.split() for call in calls]
    if len({(name, *role) for name, _, *role in words}) > 1:
        return fenced("\n".join(calls), "")
    (name, _, *role), ordinals = words[0], " ".join(ordinal for _, ordinal, *_ in words)
    return fenced(f"for n in {ordinals}; do {' '.join((name, '$n', *role))}; done", "")
