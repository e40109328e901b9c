"""The channels of a model whose deliveries may be drained, and the reasons against the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from checker.engine.kernels.stubborn_kernels import MOST_CHANNELS, MOST_PROCESSES
from checker.engine.model import Channel, Kind, Model, Send


class EligibleChannel(NamedTuple):
    """A channel: the positions of its column, and of those of its sender and receiver.

    `rules` and `steps` are its own rules and the steps of its sender, as `Tables.senders` names them; `actors` are the
    positions of the actors over its column, and `receivers` of those over its receiver.
    """

    column: int
    source: int
    target: int
    appends: Callable[[Any], bool] | None
    carries: Callable[[Any], tuple[Send, ...] | None] | None
    settled: Callable[[Any], bool] | None
    rules: frozenset[str]
    steps: frozenset[str]
    actors: frozenset[int]
    receivers: frozenset[int]


class Eligibility(NamedTuple):
    """The eligible channels, and a reason for each other one, by its column."""

    channels: list[EligibleChannel]
    reasons: dict[str, str]


def eligible_channels(model: Model) -> Eligibility:
    """The channels to drain. A model with a property of liveness has none, since liveness needs the whole graph."""
    found, reasons = [], {}
    for channel in model.channels:
        reason = _reason_against(model, channel)
        if reason is not None:
            reasons[channel.column] = reason
            continue
        column = channel.column
        own = [rule.name for rule in model.rules if [read.column for read in rule.reads] == [column]]
        found.append(
            EligibleChannel(
                model.index[column],
                model.index[channel.source],
                model.index[channel.target],
                channel.appends,
                channel.carries,
                channel.settled,
                frozenset(f"the rule {name!r}" for name in own),
                frozenset(f"the step of {actor.name!r}" for actor in model.actors if channel.source in actor.columns),
                frozenset(number for number, actor in enumerate(model.actors) if column in actor.columns),
                frozenset(number for number, actor in enumerate(model.actors) if channel.target in actor.columns),
            )
        )
    return Eligibility(found, reasons)


def _reason_against(model: Model, channel: Channel) -> str | None:
    """The reason why deliveries of a channel are not drained, if there is one."""
    columns = {channel.column, channel.source, channel.target}
    if model.liveness:
        return f"the property {model.liveness[0].name!r} is one of liveness, which needs the whole graph of states"
    for prop in model.properties:
        if prop.kind is not Kind.FINAL and any(read.column == channel.column for read in prop.reads):
            return f"the property {prop.name!r} reads it"
    for rule in model.rules:
        if len(rule.reads) > 1 and any(read.column == channel.column for read in rule.reads):
            return f"the rule {rule.name!r} reads it together with other columns"
    for actor in model.actors:
        if len(actor.columns) > 1 and columns & {*actor.columns}:
            return f"the actor {actor.name!r} has several columns, among them one of the channel or of its ends"
    ends = {channel.source, channel.target}
    if ends & {each.column for each in model.channels} or len(columns) < 3:
        return "its column, its sender and its receiver are not three columns, or an end is a channel itself"
    return None


def reason_against_stubborn_sets(model: Model, eligibility: Eligibility) -> str | None:
    """The reason why stubborn sets cannot be selected in a model, if there is one."""
    for column, reason in eligibility.reasons.items():
        return f"{column}: {reason}"
    if not model.channels:
        return "the model declares no channel"
    known = {column for channel in model.channels for column in (channel.column, channel.source, channel.target)}
    channels = {channel.column for channel in model.channels}
    for channel in model.channels:
        if channel.appends is None and channel.carries is None:
            return f"{channel.column}: the model does not say which operations append"
    for prop in model.properties:
        if channels & {read.column for read in prop.reads}:
            return f"the property {prop.name!r} reads a channel"
    for rule in model.rules:
        if len(rule.reads) == 1 and rule.reads[0].column not in known:
            return f"the rule {rule.name!r} belongs to neither a process nor a channel"
    if len(known - channels) > MOST_PROCESSES:
        return f"the model has more than {MOST_PROCESSES} processes"
    if len(channels) > MOST_CHANNELS:
        return f"the model has more than {MOST_CHANNELS} channels"
    return None
