"""The requests that the page may send. Any other request is refused, with a message that says how to correct it.

A request names a walk by the fingerprint of its job and the ordinals of its moves: `{"job": "6f0c…", "path": [0, 2]}`.
The same walk in a link is `6f0c…/0.2/91ab…`; the last part is a check, so a link that now leads elsewhere is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec

from checker.local_page import BadRequestError
from spec.text import integers

LONGEST = 2000  # moves of a walk
LONGEST_FILE_NAME = 255  # limit of common file systems
MOST_TEXT = 200  # characters of a search text or a name
ORDINALS = 1 << 16  # moves of one state, the same limit as in the table engine

Ordinal = Annotated[int, msgspec.Meta(ge=0, lt=ORDINALS)]
Name = Annotated[str, msgspec.Meta(max_length=MOST_TEXT)]


class _OfWalk(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    job: Name
    path: Annotated[tuple[Ordinal, ...], msgspec.Meta(max_length=LONGEST)]


class WalkRequest(_OfWalk, forbid_unknown_fields=True, frozen=True):
    """Show a walk. `check` is the check of the end in its link."""

    check: Name | None = None


class PropertyGoal(msgspec.Struct, tag="property", tag_field="type", frozen=True):
    """A state in which a property fails, is witnessed, or has its goal, depending on its kind."""

    name: Name


class ActionGoal(msgspec.Struct, tag="action", tag_field="type", frozen=True):
    """A move with that action."""

    name: Name


class CaptionGoal(msgspec.Struct, tag="words", tag_field="type", frozen=True):
    """A move whose caption contains this text, in any case."""

    text: Annotated[str, msgspec.Meta(min_length=1, max_length=MOST_TEXT)]


class EndGoal(msgspec.Struct, tag="end", tag_field="type", frozen=True):
    """A state in which nothing can happen."""


Goal = PropertyGoal | ActionGoal | CaptionGoal | EndGoal


class FindRequest(_OfWalk, forbid_unknown_fields=True, frozen=True):
    """Search ahead from the end of a walk for the nearest state or move of that kind."""

    goal: Goal


class ExploreRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Explore the whole space of a job."""

    job: Name


class RefineRequest(_OfWalk, forbid_unknown_fields=True, frozen=True):
    """Refine a walk that ends in a finding to the finer grain."""

    finding: Name


class LoadRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A saved trace, with the name of its file."""

    name: Annotated[str, msgspec.Meta(max_length=LONGEST_FILE_NAME)]
    text: str


def read_path(text: str) -> tuple[int, ...]:
    """The ordinals in a link or an address, such as `0.2.1`. Raises BadRequestError."""
    parts = text.split(".") if text else []
    if len(parts) > LONGEST:
        raise BadRequestError(f"the path has {len(parts):,} moves; a walk has {LONGEST:,} at most")
    ordinals = integers(parts, 0, ORDINALS)
    if ordinals is None:
        raise BadRequestError("the path is not a list of ordinals; write it like 0.2.1")
    return ordinals


def write_path(path: Sequence[int]) -> str:
    """The ordinals as written in a link."""
    return ".".join(map(str, path))
