"""Reduced searches of small models, repeated until no answer is refuted, and the deliveries that drain their rows."""

from __future__ import annotations

from collections.abc import Callable

from checker.engine import Exploration, Model
from checker.engine.model import Row
from checker.engine.search import RefutedError, Search
from checker.engine.semantics import by_rule
from checker.engine.tables import Tables


def searched(model: Model, tables: Tables) -> Exploration:
    """Search a model with tables that a reduction observes."""
    while True:
        try:
            return Search(model, reduced=tables).run()
        except RefutedError:
            continue


def deliveries(model: Model, tables: Tables) -> Callable[[Row, Row], Row]:
    """Return a function from a row and its successor to that successor after the deliveries that drain it."""
    observer = tables.observer
    columns = [[column.name] for column in model.columns]
    own = [{rule.name for rule in model.rules if [each.column for each in rule.reads] == only} for only in columns]
    assert observer is not None

    def drained(before: Row, row: Row) -> Row:
        for column in observer.drained(tables.row(before), tables.row(row)):
            row = next(after for rule, _, after in by_rule(model, row) if rule in own[column])
        return row

    return drained
