"""Models in Python files: `my_model.py:name` is the job of a Model, or of a function that returns one.

    my_model.py:model              a Model, or a function without arguments
    my_model.py:model(3)           a function with arguments, which are literals
    my_model.py:model(3, lossy=True)

Loading a model runs the code of its file, as Python does with a program. So a file is loaded only if its user names it:
the source of a trace is never enough. The folder of the file is on the path of imports meanwhile, so that it can import
the modules beside it.

Rules of this module:

- Every mistake is a ScenarioError with the file, the line if there is one, and the correction. The code of the user may
  raise any exception; its class and its message are part of the error.
- The source of the job has a digest of the file, so a changed model is another search and another link.
"""

from __future__ import annotations

import ast
import hashlib
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from checker.engine import Model, ModelError
from checker.engine.contract import first_rows
from checker.job import Job
from checker.kit.events import Events
from checker.printable import nearest
from checker.scenario.yaml_lines import ScenarioError
from checker.user_files import SCENARIO, TooLargeError, read_bytes

KIND = "model"
"""The kind of the source of such a job."""
_PATTERN = re.compile(r"(?P<file>.+?\.py):(?P<model>.*)", re.DOTALL)
EXAMPLE = "write FILE.py:NAME or FILE.py:NAME(ARGUMENTS), with numbers and strings as arguments"


def is_model(path: Path) -> bool:
    """Whether a name on a command line is that of a Python file, with or without a model in it."""
    return path.suffix == ".py" or _PATTERN.fullmatch(str(path)) is not None


def file_of(path: Path) -> Path:
    """The path of the file: without the name of the model."""
    match = _PATTERN.fullmatch(str(path))
    return path if match is None else Path(match["file"])


def load_model(path: Path, presenter: str | None = None) -> Job:
    """The job of a model in a Python file, whose code is run. Raises ScenarioError.

    `presenter` is the name of a presenter in the file (`checker.present.AuthorPresenter`).
    """
    return _job(path, presenter)[0]


def load_events(path: Path, events: str | None = None) -> tuple[Job, Events]:
    """The job of a model, and the meaning of the lines of a log, by its name in the same file. Raises ScenarioError.

    It is an `Events`, or the function of one. Without a name, lines have the names of the model.
    """
    job, file, module = _job(path, None)
    if events is None:
        return job, Events()
    value = _named(file, module, events)
    if callable(value):
        value = Events(value)
    if not isinstance(value, Events):
        right = "name a checker.kit.Events, or a function from a line to a checker.kit.Event"
        raise ScenarioError(str(file), 0, "", f"{events!r} is {type(value).__name__}", right)
    return job, value


def _job(path: Path, presenter: str | None) -> tuple[Job, Path, ModuleType]:
    """The job of a model, with its file and its module. Raises ScenarioError."""
    file = file_of(path)
    match = _PATTERN.fullmatch(str(path))
    if match is None:
        raise ScenarioError(str(path), 0, "", "it is a Python file without the name of a model", f"write {path}:NAME")
    call = _parsed(match["model"], str(file))
    text = _text(file)
    module = _imported(file, text)
    value = _named(file, module, call.name)
    line = _line_of(value)
    model = _model(str(file), line, call, value)
    with _reported(file, call.name):
        first_rows(model)
    source = {
        "kind": KIND,
        "file": file.as_posix(),
        "model": match["model"],
        "line": line,
        "digest": hashlib.sha256(text).hexdigest(),
    }
    from checker.present import AuthorPresenter, DefaultPresenter, job_of_model  # noqa: PLC0415 (errors come first)

    if presenter is None:
        with _reported(file, call.name):
            return job_of_model(model, source, DefaultPresenter(model)), file, module
    given = _named(file, module, presenter)
    with _reported(file, presenter):
        shown_by = AuthorPresenter(presenter, given, model)
        return job_of_model(model, {**source, "presenter": presenter}, shown_by), file, module


def _named(file: Path, module: ModuleType, name: str) -> Any:
    """The value of a name in a file. Raises ScenarioError."""
    value = getattr(module, name, None)
    if value is None:
        raise ScenarioError(str(file), 0, "", f"it has no {name!r}", _suggestion(module, name))
    return value


class _ModelCall(NamedTuple):
    """The name of a model in its file, and the arguments if there are parentheses."""

    name: str
    arguments: tuple[Any, ...] | None
    named: dict[str, Any]


def _parsed(text: str, file: str) -> _ModelCall:
    """Read NAME or NAME(ARGUMENTS). Raises ScenarioError."""
    try:
        expression = ast.parse(text.strip(), mode="eval").body
        if isinstance(expression, ast.Name):
            return _ModelCall(expression.id, None, {})
        if isinstance(expression, ast.Call) and isinstance(expression.func, ast.Name):
            arguments = tuple(ast.literal_eval(arg) for arg in expression.args)
            keywords = {
                keyword.arg: ast.literal_eval(keyword.value)
                for keyword in expression.keywords
                if keyword.arg is not None
            }
            if len(keywords) == len(expression.keywords):
                return _ModelCall(expression.func.id, arguments, keywords)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        pass
    raise ScenarioError(file, 0, "", f"{text[:60]!r} is not the name of a model", EXAMPLE)


def _text(file: Path) -> bytes:
    try:
        return read_bytes(file, SCENARIO)
    except TooLargeError as error:
        raise ScenarioError(str(file), 0, "", str(error), "name a file with a model") from None
    except OSError as error:
        why = f"it cannot be read ({error.strerror})"
        raise ScenarioError(str(file), 0, "", why, "name a Python file") from None
    except ValueError:
        raise ScenarioError(str(file), 0, "", "no file has such a name", "name a Python file") from None


def _imported(file: Path, text: bytes) -> ModuleType:
    """Run a file as a module of its own. Raises ScenarioError."""
    path = file.absolute()
    try:
        code = compile(text, str(path), "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        why = f"it is not Python ({getattr(error, 'msg', None) or error})"
        raise ScenarioError(str(file), getattr(error, "lineno", None) or 0, "", why, "correct it") from None
    module = ModuleType(f"quorate_model_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # dataclasses look there for the types of their fields
    with _reported(file, "importing it"), _importable(path.parent):
        exec(code, vars(module))
    return module


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """A context in which the modules of a folder can be imported."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


@contextmanager
def _reported(file: Path, what: str) -> Iterator[None]:
    """A context in which every exception of the code of a user becomes a ScenarioError."""
    try:
        yield
    except ModelError as error:
        raise ScenarioError(str(file), _line_in(file, error), "", str(error), "correct the model") from None
    except (Exception, SystemExit) as error:
        raised = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        why = f"{what} raises {raised}".replace("\n", " ")
        raise ScenarioError(str(file), _line_in(file, error), "", why, "correct it") from None


def _line_in(file: Path, error: BaseException) -> int:
    """The innermost line of a file in the traceback of an exception; 0 if there is none."""
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.lineno or 0 for frame in reversed(frames) if frame.filename == str(file.absolute())), 0)


def _suggestion(module: ModuleType, name: str) -> str:
    """The advice for an unknown name: a similar one, or all names that may be models."""
    names = [
        key
        for key, value in vars(module).items()
        if not key.startswith("_")
        and (isinstance(value, Model) or (callable(value) and getattr(value, "__module__", "") == module.__name__))
    ]
    return nearest(name, names) if names else "define a Model, or a function that returns one"


def _line_of(value: Any) -> int:
    """The first line of a function; 1 for anything else."""
    code = getattr(value, "__code__", None)
    return int(code.co_firstlineno) if code is not None else 1


def _model(file: str, line: int, call: _ModelCall, value: Any) -> Model:
    """The model that a name stands for. Raises ScenarioError."""
    if isinstance(value, Model) and call.arguments is None:
        return value
    if isinstance(value, Model) or not callable(value):
        right = f"write {call.name} without parentheses" if isinstance(value, Model) else _RIGHT
        raise ScenarioError(file, line, "", f"{call.name!r} is not a function but {type(value).__name__}", right)
    returned = _called(file, call, value)
    if not isinstance(returned, Model):
        raise ScenarioError(
            file, line, "", f"{call.name!r} does not return a Model but {type(returned).__name__}", _RIGHT
        )
    return returned


_RIGHT = "name a checker.engine.Model, or a function that returns one"


def _called(file: str, call: _ModelCall, function: Callable[..., Any]) -> Any:
    texts = ", ".join([*map(repr, call.arguments or ()), *(f"{name}={value!r}" for name, value in call.named.items())])
    with _reported(Path(file), f"{call.name}({texts})"):
        return function(*(call.arguments or ()), **call.named)
