"""The service for clients with scripts: with the defaults of a scenario file, and sequences of any type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from checker.models.service import ServiceSetup
from checker.models.service.scripts import Script


def service_setup(clients: Sequence[Script], **fields: Any) -> ServiceSetup:
    pipelined = any(script.pipeline > 1 for script in clients)
    defaults = {"clients": len(clients), "servers": 2, "lag": True, "keeps_watches": True, "pipelined": pipelined}
    given = {name: tuple(value) if name in ("paths", "at") else value for name, value in fields.items()}
    return ServiceSetup(**defaults | given | {"variants": frozenset(fields.get("variants", ()))})
