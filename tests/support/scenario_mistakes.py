"""Correct scenarios of every kind, functions that put a mistake into one, and the line number of that mistake.

Each struct of `checker.scenario.schema` occurs in one of these scenarios. The writer in this module counts the lines,
independently of the reader in `checker.scenario`.
"""

import copy
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any

import msgspec
import pytest

from checker.models.service import FaultBudgets
from checker.scenario import ScenarioError, load, schema

Path = tuple[str | int, ...]
THREE = "initLimit=5\nsyncLimit=2\nserver.1=a:2888:3888\nserver.2=b:2888:3888\nserver.3=c:2888:3888\n"
COMMON: dict[str, Any] = {
    "name": "one", "about": "two", "sometimes": [], "final": [], "recoverable": [], "eventually": [],
    "limits": {"depth": 2, "states": 1000, "seconds": 5, "memory": "1GB"}, "until_witnessed": False,
    "expect": "passed", "may_not_fire": ["crash"],
}  # fmt: skip
ENSEMBLE: dict[str, Any] = {
    **COMMON,
    "file": "zoo.cfg",
    "servers": {
        1: {"file": "zoo.cfg", "epoch": 1, "accepted_epoch": 2, "zxid": "1:1", "late": False, "wide_counter": "known",
            "other_files": ["zoo.cfg"], "log": ["1:2", {"zxid": "1:3", "value": 5}]},
        2: {}, 3: {},
    },
    "history": [{"start": [1, 2]}],
    "plan": [{"restart": 2, "file": "zoo.cfg", "wait": "rejoined"}],
    "opening": [{"crash": 1}],
    "protocol": "zab", "discovery": "packets", "disk": "async", "commits": "sync", "clients": "leader",
    "zxids": 1, "rollover": "election", "workload": {"writes": 2, "syncs": 1, "pings": 1},
    "grain": "oracle", "network": "any", "rounds": 3, "elections": 2,
    "channel": {"capacity": 2, "resend": True, "merge_repeats": True},
    "faults": {"crashes": 1, "restarts": 1, "cuts": 1, "partitions": 1, "heals": 1, "disconnects": 1},
    "variants": ["torn-record"], "always": ["Leadership"],
}  # fmt: skip
RECONFIG: dict[str, Any] = {
    **ENSEMBLE, "plan": [{"reconfig": {"add": [1], "observers": [2], "remove": [3]}}], "opening": [], "variants": [],
}  # fmt: skip
NUMBER: dict[str, Any] = {
    **{key: value for key, value in ENSEMBLE.items() if key not in ("file", "history", "plan", "opening")},
    "servers": {
        "count": 3, "observers": 1, "late": 1, "established": False, "other_view": {2: [1, 2]}, "epoch": 1,
        "log": ["1:1"],
    },
    "sizes": {2: {}, 3: {"faults": {"crashes": 2}}},
}  # fmt: skip
RECIPE: dict[str, Any] = {
    **COMMON, "recipe": "lock", "clients": 2, "servers": 2, "lag": True, "clocks": "paused", "rounds": 1, "writes": 1,
    "again": 1, "quits": 1, "removals": 1, "faults": {"disconnects": 1, "expiries": 1, "crashes": 1},
    "variants": ["no-fencing"], "always": ["OneHolder"],
}  # fmt: skip
SERVICE: dict[str, Any] = {
    **COMMON, "service": [["get -w /a", ["create /b", "set /a"]], [{"one of": ["set /a", "close"]}]], "servers": 2,
    "lag": True, "paths": ["/a"], "at": [1, 2], "clocks": "trusted", "keeps_watches": True, "pipeline": 1,
    "faults": {"disconnects": 1, "expiries": 1, "crashes": 1}, "variants": ["watch-after-data"],
    "always": ["EventBeforeData"],
}  # fmt: skip
PLACES: list[tuple[type[msgspec.Struct], dict[str, Any], Path]] = [
    (schema.Scenario, ENSEMBLE, ()),
    (schema.ServerEntry, ENSEMBLE, ("servers", 1)),
    (schema.ServersEntry, NUMBER, ("servers",)),
    (schema.LogEntry, ENSEMBLE, ("servers", 1, "log", 1)),
    (schema.HistoryEntry, ENSEMBLE, ("history", 0)),
    (schema.PlanEntry, ENSEMBLE, ("plan", 0)),
    (schema.ReconfigEntry, RECONFIG, ("plan", 0, "reconfig")),
    (schema.OpeningEntry, ENSEMBLE, ("opening", 0)),
    (schema.FaultsEntry, ENSEMBLE, ("faults",)),
    (schema.WorkloadEntry, ENSEMBLE, ("workload",)),
    (schema.ChannelEntry, ENSEMBLE, ("channel",)),
    (schema.LimitsEntry, ENSEMBLE, ("limits",)),
    (schema.RecipeScenario, RECIPE, ()),
    (FaultBudgets, RECIPE, ("faults",)),
    (schema.ServiceScenario, SERVICE, ()),
    (FaultBudgets, SERVICE, ("faults",)),
]
"""The scenario and the path where each struct occurs."""
ONE_OF = {
    schema.OpeningEntry: set(schema.OpeningEntry.__struct_fields__),
    schema.PlanEntry: {"restart", "stop", "start", "reconfig"},
}
"""The fields of which an entry has exactly one."""
KINDS_OF_PROPERTIES = ("always", "sometimes", "final", "recoverable", "eventually")


# Scenarios as text, with the line number of every value.


def written(value: Any, path: Path = (), first: int = 1) -> tuple[list[str], dict[Path, int]]:
    """Return the lines of a value in YAML's block style, and the line where each path begins."""
    lines: list[str] = []
    places: dict[Path, int] = {}
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, each in items:
        places[*path, key] = first + len(lines)
        begin = f"{key}:" if isinstance(value, dict) else "-"
        if isinstance(each, dict | list) and each:
            on_this_line = isinstance(value, list)
            inner, inside = written(each, (*path, key), first + len(lines) + (not on_this_line))
            places |= inside
            if on_this_line:
                lines += [f"- {inner[0]}", *(f"  {line}" for line in inner[1:])]
            else:
                lines += [begin, *(f"  {line}" for line in inner)]
        else:
            lines.append(f"{begin} {scalar(each)}")
    return lines, places


def scalar(value: Any) -> str:
    words = {True: "true", False: "false", None: "null"}
    if value is None or isinstance(value, bool):
        return words[value]
    return f'"{value}"' if isinstance(value, str) else str(value)


def told(path: Path, whole: Any) -> str:
    """Return a path in the form that error messages use."""
    shown = ""
    for key in path:
        shown += f"[{key}]" if isinstance(whole, list) else f".{key}"
        whole = whole[key]
    return shown.removeprefix(".")


def at(whole: Any, path: Path) -> Any:
    for key in path:
        whole = whole[key]
    return whole


def changed(base: Mapping[str, Any], path: Path, value: Any) -> dict[str, Any]:
    """Return the scenario with another value at that path. In an entry of `ONE_OF`, remove the other alternatives."""
    whole = copy.deepcopy(dict(base))
    around = at(whole, path[:-1])
    for kind, fields in ONE_OF.items():
        if any(place == path[:-1] for each, _, place in PLACES if each is kind) and path[-1] in fields:
            for field in fields - {path[-1]}:
                around.pop(field, None)
    around[path[-1]] = value
    return whole


def misspelt_key(base: Mapping[str, Any], path: Path, word: str) -> dict[str, Any]:
    """Return the scenario with another word in place of a key, or with the word as a new last key if that key is
    absent.
    """
    whole = copy.deepcopy(dict(base))
    around = at(whole, path[:-1])
    entries = [(word if key == path[-1] else key, value) for key, value in around.items()]
    around.clear()
    around.update(entries)
    around.setdefault(word, None)
    return whole


def misspellings(word: str) -> list[str]:
    """Return the word with a doubled letter; if it is long enough to stay legible, also with two letters swapped."""
    place = len(word) // 2
    twice = word[:place] + word[place] + word[place:]
    swapped = word[: place - 1] + word[place] + word[place - 1] + word[place + 1 :]
    return [twice, swapped] if len(word) > 4 and swapped != word else [twice]


class Scenarios:
    """A folder for scenarios, which are written there and loaded."""

    def __init__(self, folder: FilePath) -> None:
        (folder / "zoo.cfg").write_text(THREE, encoding="utf-8")
        self.file = folder / "s.yaml"

    def write(self, whole: Mapping[str, Any]) -> dict[Path, int]:
        lines, places = written(dict(whole))
        self.file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return places

    def refused(self, whole: Mapping[str, Any], path: Path) -> str:
        """Return the error for a mistake at that path; assert that it names the file, the line and the path."""
        places = self.write(whole)
        with pytest.raises(ScenarioError) as raised:
            load(self.file)
        said = str(raised.value)
        assert said.startswith(f"s.yaml:{places[path]}: {told(path, whole)}"), f"{path}, line {places[path]}: {said}"
        assert raised.value.right, said
        assert "see what is expected" not in said
        return said

    def refused_or_loaded(self, whole: Mapping[str, Any], path: Path) -> None:
        places = self.write(whole)
        try:
            load(self.file)
        except ScenarioError as error:
            assert str(error).startswith(f"s.yaml:{places[path]}: {told(path, whole)}"), f"{path}: {error}"
