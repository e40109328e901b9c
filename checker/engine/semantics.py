"""The semantics of a model: the moves of a row, and the row after each.

The plain engine uses only these functions, and the table engine must agree with them. Both list the successors of a row
in the same order, so the n-th successor means the same to both. A path that the table engine keeps as ordinals is
rebuilt here, which checks the tables at every step.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from checker.engine.contract import check, first_of_equal, moves, project, rename, short, step
from checker.engine.discovery import Discovery, Step
from checker.engine.model import (
    NO_EXCEPTION,
    TRIVIAL,
    AnswerError,
    Finding,
    Kind,
    Model,
    ModelError,
    Move,
    Property,
    RaisedError,
    Read,
    Renaming,
    Row,
    Rule,
    Send,
    Trivial,
)


def successors(model: Model, row: Row) -> Iterator[tuple[Move, Row]]:
    """The possible moves of a row, each with the row it leads to, in the order that both engines keep."""
    return ((move, after) for _, move, after in by_rule(model, row))


def possible(model: Model, row: Row) -> list[tuple[Move, Row]]:
    """The successors of a row; an empty list if a function of the model raises there."""
    try:
        return list(successors(model, row))
    except RaisedError:
        return []


def is_end(model: Model, row: Row) -> bool:
    """Whether a row has no successor, and no function of the model raises there."""
    try:
        return not any(True for _ in successors(model, row))
    except RaisedError:
        return False


def by_rule(model: Model, row: Row) -> Iterator[tuple[str, Move, Row]]:
    """The possible moves with the resulting rows, as `successors`, and the name of the rule that lists the move."""
    for name, move in listed(model, row):
        after = fire(model, row, move)
        if after is not None:
            yield name, move, after


def listed(model: Model, row: Row) -> Iterator[tuple[str, Move]]:
    """The moves that the rules list for a row, each with the name of its rule; some of them may be impossible."""
    for rule in model.rules:
        arguments = read(model, rule.reads, row)
        if arguments is not None:
            for move in moves(model, rule, *arguments):
                yield rule.name, move


def read(model: Model, reads: Iterable[Read], row: Row) -> tuple[object, ...] | None:
    """Return the values that `reads` show of a row, or None if a projection returns None ("never").

    If one returns None, it does not matter that another one raises.
    """
    arguments = []
    failed: AnswerError | None = None
    for column, projection in reads:
        value = row[model.index[column]]
        try:
            part = value if projection is None else project(column, projection, value)
        except AnswerError as error:
            failed = failed or error
            continue
        if part is None and projection is not None:
            return None
        arguments.append(part)
    if failed is not None:
        raise failed
    return tuple(arguments)


def answer(model: Model, prop: Property, row: Row) -> Finding | Trivial | None:
    """Return the answer of a property for a row."""
    arguments = read(model, prop.reads, row)
    return TRIVIAL if arguments is None else check(prop, arguments)


def answer_if_any(model: Model, prop: Property, row: Row) -> Finding | Trivial | None:
    """The answer of a property for a row; TRIVIAL if an exception prevents it, which is a finding of another one."""
    try:
        return answer(model, prop, row)
    except RaisedError:
        return TRIVIAL


def finding_at(model: Model, prop: Property, row: Row) -> Finding | None:
    """The finding of a property in a row, if there is one; that of a final property only where no move is possible.

    An exception is a finding of `NO_EXCEPTION`, and of no other property. Raises ModelError.
    """
    if prop is NO_EXCEPTION:
        return exception_at(model, row)
    finding = answer_if_any(model, prop, row)
    is_examined = prop.kind is not Kind.FINAL or is_end(model, row)
    return finding if isinstance(finding, Finding) and is_examined else None


def exception_at(model: Model, row: Row) -> Finding | None:
    """The finding of `NO_EXCEPTION` in a row: the first exception, in the order of a search. Raises ModelError."""
    try:
        for prop in model.properties:
            if prop.kind is not Kind.FINAL:
                answer(model, prop, row)
        if not list(successors(model, row)):
            for prop in model.finals:
                answer(model, prop, row)
    except RaisedError as error:
        return raised(error)
    return None


def raised(error: RaisedError) -> Finding:
    """The finding of `NO_EXCEPTION` for an exception, with the move whose step raised it."""
    move = () if error.move is None else (("move", (error.move.action, *error.move.arguments)),)
    return Finding(error.clause, (*move, *error.values))


def fire(model: Model, row: Row, move: Move) -> Row | None:
    """The row after a move, or None if one of its operations is impossible."""
    after = list(row)
    try:
        return tuple(after) if _carry_out(model, after, move.sends) else None
    except AnswerError as error:
        error.move = move
        raise


def operations(model: Model, row: Row, move: Move) -> tuple[Send, ...]:
    """The operations that a possible move carries out, with all of their consequences, in order."""
    return _fire(model, row, move)[1]


def footprint(model: Model, row: Row, rule: Rule, move: Move) -> tuple[Row, int, int] | None:
    """The row after a move that a rule lists, and the columns that it reads and changes; None if it is impossible.

    A number has a bit for each column. Two moves commute if neither changes a column that the other reads or changes.
    """
    after, sends = _fire(model, row, move)
    if after is None:
        return None
    names = {column for send in sends for column in model.actors[model.actor_index[send.actor]].columns}
    names.update(column for column, _ in rule.reads)
    reads = sum(1 << model.index[name] for name in names)
    return after, reads, sum(1 << place for place, value in enumerate(after) if value != row[place])


def _fire(model: Model, row: Row, move: Move) -> tuple[Row | None, tuple[Send, ...]]:
    """The row after a move, or None, and the operations that were carried out."""
    after, sends = list(row), list[Send]()
    try:
        is_possible = _carry_out(model, after, move.sends, sends)
    except AnswerError as error:
        error.move = move
        raise
    return tuple(after) if is_possible else None, tuple(sends)


def _carry_out(model: Model, row: list[object], sends: Iterable[Send], sent: list[Send] | None = None) -> bool:
    for name, operation in sends:
        if sent is not None:
            sent.append(Send(name, operation))
        actor = model.actors[model.actor_index[name]]
        first_of_equal(model.known[name], operation, f"a Send to {name!r}")
        places = [model.index[column] for column in actor.columns]
        outcome = step(model, actor, tuple([row[place] for place in places]), operation)
        if outcome is None:
            return False
        for place, value in zip(places, outcome.values, strict=True):
            if not (values := model.known[place]):
                for first in model.first_rows:
                    first_of_equal(values, first[place], "the initial state")
            row[place] = first_of_equal(values, value, f"the step of {name!r}")
        if outcome.sends and not _carry_out(model, row, outcome.sends, sent):
            return False
    return True


def ordinals(parents: Mapping[Row, tuple[Row, int] | None], row: Row) -> list[int]:
    """The ordinals of the path to a row. `parents` has, for each row seen, its parent and its ordinal there."""
    steps: list[int] = []
    while (parent := parents[row]) is not None:
        row, ordinal = parent
        steps.append(ordinal)
    return steps[::-1]


def route(model: Model, parents: Mapping[Row, tuple[Row, int] | None], row: Row) -> list[int]:
    """The path to a row for `rebuild`. `parents` are those of `ordinals`."""
    steps, start = ordinals(parents, row), row
    while (parent := parents[start]) is not None:
        start = parent[0]
    return [*start_of(model, start), *steps]


def start_of(model: Model, row: Row) -> list[int]:
    """The beginning of a path for `rebuild` that starts at a first row: its number, if there are several."""
    return [model.first_rows.index(row)] if len(model.first_rows) > 1 else []


def length(model: Model, ordinals: Sequence[int]) -> int:
    """The number of moves of a path for `rebuild`."""
    return len(ordinals) - (len(model.first_rows) > 1)


def rebuild(
    model: Model, ordinals: Iterable[int], is_reached: Callable[[Row], bool] = lambda _: True
) -> tuple[Step, ...]:
    """The path from a first row that takes these successors; if there are several, it begins with the number of one.

    Raises ModelError if one is missing, or if the path does not reach the row that the tables reached.
    """
    rest = iter(ordinals)
    path = [Step(None, model.first_rows[next(rest) if len(model.first_rows) > 1 else 0])]
    for ordinal in rest:
        step = next((step for n, step in enumerate(successors(model, path[-1].row)) if n == ordinal), None)
        if step is None:
            raise ModelError(
                f"step {len(path)} of a path has no successor number {ordinal}: a function of the model "
                f"{model.name!r} gives different results for equal arguments"
            )
        path.append(Step(*step))
    if not is_reached(path[-1].row):
        raise ModelError("the plain engine reaches another state than the tables; a step is not a function")
    return tuple(path)


def rediscover(model: Model, prop: Property, path: tuple[Step, ...], error: ModelError | None = None) -> Discovery:
    """The finding of a property at the end of a path. Raises ModelError if there is none.

    For `NO_EXCEPTION`, `error` is the one of the search. It is raised if no function raises an exception here, which
    the model does not allow: then it is an error of the model in this state.
    """
    try:
        finding = exception_at(model, path[-1].row) if prop is NO_EXCEPTION else answer(model, prop, path[-1].row)
    except AnswerError as now:
        raise in_state(now, path) from now
    if finding is None and isinstance(error, RaisedError):
        raise in_state(ModelError(f"{error}; called again it does not raise, so that it is no function"), path)
    if finding is None and error is not None:
        raise in_state(error, path)
    if not isinstance(finding, Finding):
        raise ModelError(f"the property {prop.name!r} finds nothing where it found something before")
    return Discovery(prop, finding, len(path) - 1, path)


def renamed(model: Model, to: Renaming, row: Row) -> Row:
    """A row with other names. Raises ModelError."""
    after = list(row)
    for column, value in zip(model.columns, row, strict=True):
        after[model.index[to.columns.get(column.name, column.name)]] = rename(to.value, value)
    return tuple(after)


LAST_MOVES = 8
"""The moves of a path in the message of an error."""


def in_state(error: ModelError, path: tuple[Step, ...]) -> ModelError:
    """An error of a model with its state, the last one of a path, and the last moves to it."""
    taken = [step.move for step in path if step.move is not None]
    texts = [" ".join([move.action, *(short(argument, BRIEF) for argument in move.arguments)]) for move in taken]
    left_out = len(texts) - LAST_MOVES
    run = ", ".join([*([f"{left_out} others"] if left_out > 0 else []), *texts[-LAST_MOVES:]])
    count = "1 move" if len(taken) == 1 else f"{len(taken)} moves"
    place = f"the state {short(path[-1].row, SHOWN)} after {count}: {run}" if taken else "the first state"
    return ModelError(f"{str(error).removesuffix('.')}; this is in {place}")


BRIEF, SHOWN = 40, 200
"""Characters of an argument of a move, and of a state, in the message of an error."""
