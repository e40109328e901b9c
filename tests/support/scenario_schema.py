"""The JSON schema of scenario files, for editors: `checker/scenario/scenario.schema.json` is what this module makes.

The keys and their types come from the structs of `checker.scenario.schema`, the words from the enums and registries
that the reader compares with, the descriptions of keys from the tables of `docs/reference-scenarios.md`, those of
entries from docstrings. A contradiction between two values (a fault without effect, an id without a server) is beyond a
schema; `quorate run FILE` reports it.
"""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from checker.engine.model import Kind
from checker.job import Verdict
from checker.models.ensemble import Grain
from checker.models.service import Clocks
from checker.models.service.setup import FaultBudgets
from checker.printable import capital
from checker.properties import ENSEMBLE_PROPERTIES
from checker.properties.recipes import RECIPE_PROPERTIES
from checker.properties.registry import Declaration, Registry
from checker.properties.service import SERVICE_PROPERTIES
from checker.scenario import ensemble_setup, plan, recipe, schema, service
from checker.scenario.ensemble import NETWORKS
from checker.scenario.request_parser import CHOICE
from checker.scenario.servers import MOST, WIDE_COUNTERS
from spec.recipes.recipes import RECIPES
from spec.releases import RELEASES
from spec.variants import DESCRIBED, Variant
from spec.zab.state import Rollover

PAGE = Path(__file__).parents[2] / "docs" / "reference-scenarios.md"
ROW = re.compile(r"^\| (?P<keys>`\w+`(?:, `\w+`)*) \| (?P<text>.*) \|$", re.MULTILINE)
LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")
WIDTH = 118
SID = r"^-?[0-9]+$"
Json = Any
Struct = type[msgspec.Struct]

TOPS: Mapping[Struct, tuple[Registry[Any, Any], tuple[str, ...]]] = {
    schema.Scenario: (ENSEMBLE_PROPERTIES, ("# Scenarios", "## Leading and following")),
    schema.RecipeScenario: (RECIPE_PROPERTIES, ("# Scenarios", "## Clients with a recipe")),
    schema.ServiceScenario: (SERVICE_PROPERTIES, ("# Scenarios", "## Clients of a service")),
}
"""Each kind of scenario, with its properties and the sections of the manual with its keys; a later one counts."""
PARTS: tuple[Struct, ...] = (
    schema.ServerEntry, schema.ServersEntry, schema.LogEntry, schema.HistoryEntry, schema.ReconfigEntry,
    schema.PlanEntry, schema.OpeningEntry, schema.FaultsEntry, schema.WorkloadEntry, schema.ChannelEntry,
    schema.LimitsEntry, FaultBudgets,
)  # fmt: skip


def ref(kind: Struct | str) -> Json:
    return {"$ref": f"#/definitions/{kind if isinstance(kind, str) else kind.__name__}"}


def items(value: Json) -> Json:
    return {"type": "array", "items": value}


def words(texts: Iterable[str]) -> Json:
    return {"type": "string", "enum": list(texts)}


def number(least: int, most: int | None = None) -> Json:
    return {"type": "integer", "minimum": least} | ({} if most is None else {"maximum": most})


ZXID = {"anyOf": [number(0), {"type": "string", "pattern": r"^[0-9]{1,10}:(0[xX][0-9a-fA-F]{1,8}|[0-9]{1,10})$"}]}
VARIANTS, RELEASE = items({"$ref": "#/definitions/Variant"}), {"$ref": "#/definitions/Release"}
REQUEST: Json = {"anyOf": [{"type": "string"}, items({"type": "string"})]}
CHOICES: Json = {
    "type": "object", "properties": {CHOICE: items(REQUEST)}, "required": [CHOICE], "additionalProperties": False
}  # fmt: skip
TAKES_TIME = words((ensemble_setup.SYNCHRONOUS, ensemble_setup.ASYNCHRONOUS))
SERVERS: Json = {
    "type": ["array", "object"],
    "items": {"type": "integer"},
    "if": {"type": "object", "required": ["count"]},
    "then": ref(schema.ServersEntry),
    "else": {
        "patternProperties": {SID: {"anyOf": [ref(schema.ServerEntry), {"type": "null"}]}},
        "additionalProperties": False,
    },
}
OF_ALL: Mapping[str, Json] = {
    "variants": VARIANTS,
    "limits": ref(schema.LimitsEntry),
    "expect": words(verdict.value for verdict in Verdict if verdict is not Verdict.ERROR),
    "violations": {"type": "object", "additionalProperties": number(0), "minProperties": 1},
}
CLIENTS: Mapping[str, Json] = {"faults": ref(FaultBudgets), "clocks": words(clocks.value for clocks in Clocks)}
VALUES: Mapping[Struct, Mapping[str, Json]] = {
    schema.Scenario: {
        **OF_ALL,
        "servers": SERVERS,
        "sizes": {
            "type": "object",
            "propertyNames": {"pattern": f"^[1-{MOST}]$"},
            "additionalProperties": {
                "type": "object",
                "propertyNames": words(
                    name for name in schema.Scenario.__struct_fields__ if name not in ("file", "sizes")
                ),
            },
        },
        "history": items(ref(schema.HistoryEntry)),
        "plan": items(ref(schema.PlanEntry)),
        "opening": items(ref(schema.OpeningEntry)),
        "protocol": words(schema.PROTOCOLS),
        "discovery": words((ensemble_setup.PACKETS, ensemble_setup.ONE_STEP)),
        "disk": TAKES_TIME,
        "commits": TAKES_TIME,
        "clients": words((ensemble_setup.AT_LEADER, ensemble_setup.ANYWHERE)),
        "workload": ref(schema.WorkloadEntry),
        "zxids": number(1),
        "rollover": words(way.value for way in Rollover),
        "grain": words(grain.value for grain in Grain),
        "network": words(NETWORKS),
        "rounds": number(1),
        "elections": number(0),
        "channel": ref(schema.ChannelEntry),
        "faults": ref(schema.FaultsEntry),
        "like": RELEASE,
    },
    schema.RecipeScenario: {
        **OF_ALL,
        **CLIENTS,
        **{key: number(*bounds) for key, bounds in recipe.MOST.items()},
        "recipe": words(RECIPES),
    },
    schema.ServiceScenario: {
        **OF_ALL,
        **CLIENTS,
        **{key: number(*bounds) for key, bounds in service.MOST.items()},
        "service": items(items({"anyOf": [*REQUEST["anyOf"], CHOICES]})),
    },
    schema.ServerEntry: {
        "epoch": number(0), "accepted_epoch": number(0), "zxid": ZXID, "like": RELEASE, "variants": VARIANTS,
        "wide_counter": words(WIDE_COUNTERS),
        "log": items({"anyOf": [*ZXID["anyOf"], ref(schema.LogEntry)]}),
    },
    schema.ServersEntry: {
        "count": number(1, MOST), "observers": number(0), "late": number(0), "epoch": number(0),
        "log": items({"anyOf": [*ZXID["anyOf"], ref(schema.LogEntry)]}),
    },
    schema.LogEntry: {"zxid": ZXID},
    schema.PlanEntry: {
        "reconfig": ref(schema.ReconfigEntry), "disk": words((plan.KEPT, plan.EMPTY, plan.EARLIER)),
        "wait": words(("rejoined", "none")), "like": RELEASE, "variants": VARIANTS,
    },
    schema.OpeningEntry: {"restore": ZXID},
    schema.ChannelEntry: {"capacity": number(1)},
}  # fmt: skip
"""The values that are decoded apart, or are words or bounded numbers."""
WHOLE: Mapping[Struct, Json] = {
    schema.PlanEntry: {"oneOf": [{"required": [name]} for name in ("restart", "stop", "start", "reconfig")]},
    schema.OpeningEntry: {"minProperties": 1, "maxProperties": 1},
}
"""The rules of a whole map."""


def made() -> Json:
    """The schema."""
    template = "#/definitions/{name}"
    _, parts = msgspec.json.schema_components((*TOPS, *PARTS), ref_template=template)
    by_name = {kind.__name__: kind for kind in (*TOPS, *PARTS)}
    definitions = {name: of_map(by_name[name], part) for name, part in sorted(parts.items())}
    for top, (registry, _) in TOPS.items():
        for kind in Kind:
            named = [item(declared) for declared in registry.values() if declared.kind is kind]
            definitions[name_of_list(top, kind)] = (
                items({"anyOf": named}) if named else {"type": "array", "maxItems": 0}
            )
    variants = [{"const": one.value, "description": f"{capital(DESCRIBED[one].wrong)}."} for one in Variant]
    definitions |= {"Variant": {"anyOf": variants}, "Release": words(map(str, RELEASES))}
    kinds: Json = ref(schema.Scenario)
    for key, top in schema.KINDS.items():
        kinds = {"if": {"required": [key]}, "then": ref(top), "else": kinds}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "A scenario of Quorate",
        "description": "Made from the program: pytest --rewrite-transcripts writes it.",
        "type": "object",
        **kinds,
        "definitions": definitions,
    }


def of_map(kind: Struct, part: Json) -> Json:
    """The definition of a map: no other key, the values as they are read, the texts of the manual."""
    texts = {} if kind not in TOPS else descriptions(TOPS[kind][1])
    properties = part["properties"]
    for key, value in properties.items():
        given = VALUES.get(kind, {}).get(key)
        if kind in (schema.FaultsEntry, schema.WorkloadEntry, FaultBudgets):
            properties[key] = budget(value)
        elif kind in TOPS and key in [one.value for one in Kind]:
            properties[key] = {"allOf": [ref(name_of_list(kind, Kind(key)))]}
        elif given is not None:
            default = {"default": value["default"]} if value.get("default") is not None else {}
            properties[key] = ({"allOf": [given]} if "$ref" in given else dict(given)) | default
        if key in texts:
            properties[key]["description"] = texts[key]
    return part | {"additionalProperties": False} | WHOLE.get(kind, {})


def budget(value: Json) -> Json:
    """The value of a budget; one that may be without limit takes the word too."""
    count = number(0)
    if "anyOf" in value:
        return {"anyOf": [count, {"const": ensemble_setup.WITHOUT_LIMIT}], "default": value["default"]}
    return count | {"default": value["default"]}


def name_of_list(top: Struct, kind: Kind) -> str:
    return f"{top.__name__}.{kind.value}"


def item(declared: Declaration[Any, Any]) -> Json:
    """The way to write a property: its name, or a map from its name to its parameter."""
    meaning = {"description": f"{declared.meaning}."}
    if declared.parameter is None:
        return {"const": declared.name} | meaning
    parameter = {"description": f"{declared.parameter.description}, as in {declared.parameter.example}"}
    of_name = {"properties": {declared.name: parameter}, "required": [declared.name], "additionalProperties": False}
    return {"type": "object", **of_name, **meaning}


def descriptions(headings: Iterable[str]) -> dict[str, str]:
    """The text of each key in the tables of some sections of the manual."""
    page = f"\n{PAGE.read_text(encoding='utf-8')}"
    sections = {heading: page.partition(f"\n{heading}\n")[2].partition("\n## ")[0] for heading in headings}
    return {
        key: LINK.sub(r"\1", row["text"]).replace("\\|", "|")
        for section in sections.values()
        for row in ROW.finditer(section)
        for key in re.findall(r"`(\w+)`", row["keys"])
    }


def text_of(value: Json, indent: str = "") -> str:
    """JSON with a line for whatever fits on one."""
    line = json.dumps(value)
    if len(indent) + len(line) <= WIDTH or not isinstance(value, dict | list) or not value:
        return line
    inner = f"{indent} "
    if isinstance(value, list):
        parts, ends = [text_of(each, inner) for each in value], "[]"
    else:
        parts, ends = [f"{json.dumps(key)}: {text_of(each, inner)}" for key, each in value.items()], "{}"
    return f"{ends[0]}\n{inner}" + f",\n{inner}".join(parts) + f"\n{indent}{ends[1]}"
