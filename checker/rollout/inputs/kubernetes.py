"""The parts of Kubernetes objects that Helm values and manifests share: variables, the way of working, ids of pods."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from enum import Enum
from typing import NamedTuple, TypeVar

from checker.printable import nearest
from checker.rollout.inputs.documents import YamlValue
from checker.rollout.inputs.working import PodManagement, UpdateStrategy, WayOfWorking
from spec.quorum import Sid

SERVER = re.compile(r"^[ \t\f]*server\.(\d{1,9})[ \t\f]*[=: \t]", re.MULTILINE)
DEFAULTS = (PodManagement.ORDERED_READY, UpdateStrategy.ROLLING_UPDATE)
"""The way of working of a StatefulSet that states none."""
Named = TypeVar("Named", bound=Enum)


class Variable(NamedTuple):
    """A variable of a container with its value in the file; None if it comes from elsewhere."""

    name: str
    value: str
    place: YamlValue


def variables(listed: YamlValue | None) -> Iterator[Variable]:
    """The variables of a container (`env`) that have a value in the file itself."""
    for each in listed.items if listed is not None else ():
        name, value = each.get("name"), each.get("value")
        if name is not None and value is not None:
            yield Variable(name.text, value.text, value)


def way_of_working(
    pods: YamlValue | None,
    updates: YamlValue | None,
    partition: YamlValue | None,
    defaults: tuple[PodManagement, UpdateStrategy] = DEFAULTS,
) -> WayOfWorking:
    """The way of working by three values of a file, and the defaults for those that are not in it."""
    given = {"podManagementPolicy": pods, "updateStrategy": updates}
    return WayOfWorking(
        defaults[0] if pods is None else _named(pods, PodManagement),
        defaults[1] if updates is None else _named(updates, UpdateStrategy),
        0 if partition is None else partition.number(),
        assumed=tuple(key for key, value in given.items() if value is None),
    )


def _named(value: YamlValue, kind: type[Named]) -> Named:
    names = {str(each.value): each for each in kind}
    if value.text not in names:
        raise value.error(f"{value.text[:40]!r} is unknown", nearest(value.text, names))
    return names[value.text]


def sids_in(text: str) -> frozenset[Sid]:
    """The ids of the `server.N` lines of a zoo.cfg."""
    return frozenset(int(sid) for sid in SERVER.findall(text))


def check_pods(value: YamlValue, listed: Collection[Sid], pods: Collection[Sid]) -> None:
    """Raises ConfigError if a pod has an id that the list of servers does not have."""
    outside = sorted(set(pods) - set(listed))
    if outside:
        names = ", ".join(map(str, sorted(listed)))
        what = f"there are {len(pods)} pods, and the list of servers ({names}) lacks server {outside[0]}"
        raise value.error(what, "list every server, or ask for fewer pods")


def idle(listed: Collection[Sid], pods: Collection[Sid]) -> str:
    """A sentence about servers that are listed and have no pod; empty if every server has one."""
    without = sorted(set(listed) - set(pods))
    if not without:
        return ""
    names = ",".join(map(str, without))
    return f"no pod has the id of server {', '.join(map(str, without))}, which the list names: --down {names} says so"
