"""The format of a scenario file: one struct for each kind of map, field by field.

    name, about            its name; its reason, and the requirement or source behind it
    file, servers, sizes   the zoo.cfg of all servers, and the differences for one of them; or a number of servers
    history                the servers that are started, in this order, before the exploration
    plan                   the operator's actions
    opening                the first steps in one given order, shown in traces
    protocol, discovery, disk, commits, clients, workload, zxids, rollover
                           whether servers lead and follow after their election, and the requests to them
    grain, network, rounds, elections, channel, faults, variants, like
    always, sometimes, final
                           invariants, witnesses of possibility, and conditions on states without a next step
    recoverable, eventually
                           goals that stay possible from every state, and goals that every fair run reaches
    limits, until_witnessed, expect, violations, may_not_fire

Rules of this module: every struct is decoded strictly, so that no value is converted to another type; a key that is not
a field is an error that names the nearest field.

`JSON_SCHEMA` is made from these structs for editors; a test compares it.
"""

import re
from pathlib import Path as FilePath
from typing import Any, TypeVar

import msgspec

from checker.models.ensemble.actions import BUDGETS, FORMER_NAMES, Section
from checker.scenario.yaml_lines import Path, YamlDocument, nearest, position

T = TypeVar("T", bound=msgspec.Struct)
JSON_SCHEMA = FilePath(__file__).with_name("scenario.schema.json")


class Common(msgspec.Struct, kw_only=True):
    """The keys that every kind of scenario has.

    The values of type `Any` here, and in the scenarios below, are decoded separately, so that errors name their lines.
    """

    name: str = ""
    about: str = ""
    variants: list[str] = []
    always: list[Any] | msgspec.UnsetType = msgspec.UNSET
    sometimes: list[Any] = []
    final: list[Any] = []
    recoverable: list[Any] = []
    eventually: list[Any] = []
    limits: Any = msgspec.UNSET
    until_witnessed: bool = False
    expect: str | None = None
    violations: Any = msgspec.UNSET
    may_not_fire: list[str] = []


class Scenario(Common, kw_only=True):
    """An ensemble: the top of the file."""

    servers: Any
    sizes: dict[int, dict[str, Any]] = {}
    file: str | None = None
    history: list[Any] = []
    plan: list[Any] = []
    opening: list[Any] = []
    protocol: str = "election"
    discovery: str | None = None
    disk: str | None = None
    commits: str | None = None
    clients: str | None = None
    workload: Any = msgspec.UNSET
    zxids: int | None = None
    rollover: str | None = None
    grain: str = "fine"
    network: str = "any"
    rounds: int = 3
    elections: int | None = None
    channel: Any = msgspec.UNSET
    faults: Any = msgspec.UNSET
    like: str | None = None


class RecipeScenario(Common, kw_only=True):
    """Clients with a recipe: the top of the file. `checker.models.recipes.setup` describes the counts."""

    recipe: str
    clients: int = 2
    servers: int = 1
    lag: bool = False
    clocks: str = "trusted"
    rounds: int = 1
    writes: int = 0
    again: int = 0
    quits: int = 0
    removals: int = 0
    faults: Any = msgspec.UNSET


class ServiceScenario(Common, kw_only=True):
    """Clients that run scripts: the top of the file. `service` has a list of requests for each client."""

    service: Any
    servers: int = 2
    lag: bool = True
    paths: list[str] = []
    at: list[int] = []
    clocks: str = "trusted"
    keeps_watches: bool = True
    pipeline: int = 1
    faults: Any = msgspec.UNSET


class ServerEntry(msgspec.Struct):
    """One server: its file and its disk; `late` starts at any time or never; `other_files` are for restarts.

    `epoch` is currentEpoch, and acceptedEpoch unless that is given too; `zxid` is the zxid of the snapshot, and `log`
    the transactions after it. `like` is its release, and `variants` are further defects of its software. `wide_counter`
    is what it knows of zxids with a wide counter.
    """

    file: str | None = None
    epoch: int = 0
    accepted_epoch: int | None = None
    zxid: int | str = 0
    log: list[int | str | dict[str, Any]] = []
    late: bool = False
    other_files: list[str] = []
    like: str | None = None
    variants: list[str] = []
    wide_counter: str | None = None


class ServersEntry(msgspec.Struct):
    """Servers 1 to `count` with generated files: `zoo.cfg` has them as voters, and the last `observers` as observers.

    The last `late` servers are late, or all of fewer. `established`: a history starts all servers. `other_view` has the
    voters in the file of single servers. `epoch` and `log` are those of every disk.
    """

    count: int
    observers: int = 0
    late: int = 0
    established: bool = False
    other_view: dict[int, list[int]] = {}
    epoch: int = 0
    log: list[int | str | dict[str, Any]] = []


class LogEntry(msgspec.Struct):
    """A transaction of a log with an explicit value."""

    zxid: int | str
    value: int | str | None = None


class HistoryEntry(msgspec.Struct):
    """Servers that are started one after the other; then every step that must happen is taken."""

    start: list[int]


class ReconfigEntry(msgspec.Struct):
    """A `reconfig` command: servers that become voters, servers that become observers, and servers that leave."""

    add: list[int] = []
    observers: list[int] = []
    remove: list[int] = []


class PlanEntry(msgspec.Struct):
    """One of `restart`, `stop`, `start` and `reconfig`; the next action may wait until the server has rejoined.

    `disk` is `kept`, `empty` or `earlier`: whether the server starts with its data, with an empty data directory, or
    with the disk that it has at the beginning of the scenario. With `like` or `variants` it starts with that release.
    """

    restart: int | None = None
    stop: int | None = None
    start: int | None = None
    reconfig: Any = msgspec.UNSET
    file: str | None = None
    disk: str | None = None
    wait: str | None = None
    like: str | None = None
    variants: list[str] = []


class OpeningEntry(msgspec.Struct):
    """One of: a number of the plan's actions, the messages in flight among some servers, a fault, a write, a restore.

    `restore` is the zxid of the snapshot.
    """

    planned: int | None = None
    settle: list[int] | None = None
    arrive: list[int] | None = None
    crash: int | None = None
    cut: list[int] | None = None
    cut_off: list[int] | None = None
    disconnect: list[int] | None = None
    write: int | None = None
    restore: int | str | None = None


def _entry(name: str, section: Section) -> type[msgspec.Struct]:
    """The struct of a map of budgets: how often each event may happen over the whole run.

    A budget that may be without limit takes the word `unlimited` too.
    """
    budgets = [(name, budget) for name, budget in BUDGETS.items() if budget.section is section]
    return msgspec.defstruct(
        name, [(name, int | str if budget.may_be_unlimited else int, 0) for name, budget in budgets], module=__name__
    )


FaultsEntry = _entry("FaultsEntry", Section.FAULTS)
WorkloadEntry = _entry("WorkloadEntry", Section.WORKLOAD)


class ChannelEntry(msgspec.Struct):
    """See `spec.election.channel.ChannelRules`."""

    capacity: int = 2
    resend: bool = True
    merge_repeats: bool = True


class LimitsEntry(msgspec.Struct):
    """See `checker.engine.Limits`; memory in bytes, or as text with a unit."""

    depth: int | None = None
    states: int | None = None
    seconds: int | float | None = None
    memory: int | str | None = None


RECIPE, SERVICE = "recipe", "service"
ELECTION, ZAB = PROTOCOLS = ("election", "zab")
KINDS: dict[str, type[Common]] = {RECIPE: RecipeScenario, SERVICE: ServiceScenario}
"""The key that selects the kind of a scenario; without any of them it describes an ensemble."""


def decode(kind: type[T], document: YamlDocument, value: Any, path: Path) -> T:
    """A map as a struct. Raises ScenarioError with the line of the first error."""
    fields = tuple(sorted(kind.__struct_fields__, key=lambda name: name in Common.__struct_fields__))  # its own first
    if not isinstance(value, dict):
        raise document.error(path, f"{_type_name(value)} is here where a map is expected", _keys_of(fields))
    for key in value:
        if key not in fields:
            raise document.error((*path, key), "unknown key", _instead_of(key, kind, fields))
    try:
        return msgspec.convert(value, kind, strict=True)
    except msgspec.ValidationError as error:
        problem, place, right = _translate(str(error))
        raise document.error((*path, *place), problem, right or _keys_of(fields)) from None


def _keys_of(fields: tuple[str, ...]) -> str:
    return "its keys are " + ", ".join(fields)


def _instead_of(key: object, kind: type[msgspec.Struct], fields: tuple[str, ...]) -> str:
    """The correct key in place of one that a map does not have; it may belong to another kind of scenario."""
    if key in FORMER_NAMES:
        return f"its name is now {FORMER_NAMES[str(key)]}"
    if not issubclass(kind, Common):
        return nearest(key, fields)
    owners = [name for name, entry in KINDS.items() if key in entry.__struct_fields__]
    if owners:
        return f"it is a key of scenarios with the key {' or '.join(owners)}"
    if key in Scenario.__struct_fields__:
        return "it is a key of scenarios of an ensemble"
    return nearest(key, (*fields, *KINDS) if kind is Scenario else fields)


def _type_name(value: Any) -> str:
    names = {list: "a list", str: "text", bool: "true or false", int: "a number", float: "a number"}
    return "nothing" if value is None else names.get(type(value), "a map")


_WORDS = {
    "array": "a list",
    "object": "a map",
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "null": "nothing",
}
"""The names of msgspec's types in this project's words."""
_FORMS = {
    "array": "a list, like [1, 2]",
    "object": "a map, like {key: 1}",
    "str": "a word, in quotes if it looks like a number",
    "int": "a number in digits, like 3",
    "float": "a number, like 1.5",
    "bool": "true or false",
}
"""The notation of each type of value; a key that may be null may be left out."""


def _translate(message: str) -> tuple[str, Path, str]:
    """A message of msgspec (`Expected ... - at `$.rounds`) in this project's words, its place, and the correct form."""
    problem, _, where = message.replace("`key` in ", "").partition(" - at `$")
    path: list[str | int] = []
    for name, number in re.findall(r"\.([A-Za-z_]+)|\[(\d+)\]", where):
        path.append(name or position(int(number)))
    type_list = re.match(r"Expected `([^`]*)`", problem)
    types = [word.strip() for word in type_list[1].split("|")] if type_list else []
    forms = [_FORMS[kind] for kind in types if kind in _FORMS]

    def translate(match: re.Match[str]) -> str:
        return " or ".join(_WORDS.get(word.strip(), word) for word in match[1].split("|"))

    text = re.sub(r"`([^`]*)`", translate, problem).replace("Expected", "expected")
    text = text.replace("Object missing required field", "it lacks the key")
    return text, tuple(path), f"write {' or '.join(forms)}" if forms else ""
