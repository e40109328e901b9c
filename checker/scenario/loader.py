"""Loads scenarios of all kinds as jobs.

    load(path)                    a scenario file, with the zoo.cfg files beside it; or a model, `my_model.py:name`
    from_text(text, read, file)   the same without a file system
    from_source(job.source)       the same, from the source of a job or a trace
    job_of(trace.source)          the job of any trace: also of a model in a Python file, or of a refined run

A scenario with the key `recipe` describes clients with a recipe, one with the key `service` describes clients of a
service, and any other describes an ensemble. Each function takes variants to add to those of the scenario, and a
release whose defects the run is to have; the expected verdict of the scenario does not apply to such a run.

`Job.source` holds every text that was read, so a job can be made again from its result alone. The modules of the three
kinds are imported on first use: a command that ends in an error stays fast.

A shipped scenario is a YAML file in a folder of `spec/scenarios`, next to the zoo.cfg files that it names. The folders
and files are data, and the code does not contain their names.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from checker.command import CommandError, ExitCode
from checker.job import Job, Json
from checker.scenario.files import Files, Read, beside, names_beside
from checker.scenario.model_file import KIND as MODEL
from checker.scenario.model_file import is_model, load_model
from checker.scenario.schema import RECIPE, SERVICE
from checker.scenario.yaml_lines import (
    LikeError,
    NoEffect,
    ScenarioError,
    VariantError,
    like_named,
    read_yaml,
    variant_named,
)
from checker.user_files import SCENARIO, TooLargeError, read_bytes
from spec.config import ConfigError
from spec.releases import Release
from spec.variants import Variant

if TYPE_CHECKING:
    from checker.scenario.kind import ScenarioKind

KIND = "scenario"


def load(path: Path, added: Iterable[Variant] = (), like: Release | None = None, presenter: str | None = None) -> Job:
    """Return the job of a scenario file, with these variants and the defects of a release added.

    A path like `my_model.py:name` is that of a model in a Python file (`checker.scenario.model_file`), and `presenter`
    the name of a presenter there. Raises ScenarioError, spec.config.ConfigError for a file it names, and VariantError
    for a variant that changes nothing in it, or a release without a defect that changes something.
    """
    if is_model(path):
        return _model_job(path, frozenset(added), like, presenter)
    if presenter is not None:
        why = "--presenter names a part of a Python file, and this is a scenario"
        raise ScenarioError(path.name, 0, "", why, "leave it out")
    try:
        text = read_bytes(path, SCENARIO).decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
        names = names_beside(path)
    except TooLargeError as error:
        raise ScenarioError(path.name, 0, "", str(error), "name a scenario") from None
    except OSError as error:
        raise ScenarioError(str(path), 0, "", f"it cannot be read ({error.strerror})", "name a file") from None
    except ValueError:
        raise ScenarioError(path.name, 0, "", "it is not a text in UTF-8", "save it as UTF-8") from None
    return _job(text, beside(path), path.name, names, frozenset(added), like)


def _model_job(path: Path, added: frozenset[Variant], like: Release | None, presenter: str | None) -> Job:
    reason = NoEffect("it changes nothing in a model of your own", "name a scenario")
    for variant in sorted(added, key=lambda each: each.value):
        raise VariantError(variant.value, reason)
    if like is not None:
        raise LikeError(str(like), reason)
    return load_model(path, presenter)


def from_text(
    text: str, read: Read, file: str = "scenario.yaml", added: Iterable[Variant] = (), like: Release | None = None
) -> Job:
    """Return the job of the text of a scenario; `read` returns the zoo.cfg files. Raises as `load` does."""
    return _job(text, read, file, (), frozenset(added), like)


def from_source(source: Mapping[str, Json]) -> Job:
    """Return the job of a source. Raises as `load` does, also for a malformed source."""
    text, file, files = source.get("text"), source.get("file"), source.get("files")
    added, like = source.get("variants", []), source.get("like")
    if (
        source.get("kind") != KIND
        or not isinstance(text, str)
        or not isinstance(files, Mapping)
        or not isinstance(added, list)
        or not isinstance(like, str | None)
    ):
        right = "take the source of a job that was made from a scenario"
        raise ScenarioError(str(file), 0, "source", "this is not a source of a scenario", right)
    texts = {str(name): text_of_file for name, text_of_file in files.items() if isinstance(text_of_file, str)}
    variants = frozenset(variant_named(str(name)) for name in added)
    return _job(text, texts.get, str(file), tuple(texts), variants, None if like is None else like_named(like))


class SourceError(CommandError):
    """The source of a trace does not describe a job; the message has the reason."""

    exit_code = ExitCode.SCENARIO


def job_of(source: Any, model: Path | None = None, presenter: str | None = None) -> Job:
    """The job that a source describes. Raises SourceError.

    The source of a model in a Python file needs the `model` as its user names it, and the `presenter` if there is one,
    because loading them runs their code.
    """
    from checker.scenario.ensemble import REFINED  # noqa: PLC0415

    kind = source.get("kind") if isinstance(source, dict) else None
    try:
        if kind == KIND:
            return from_source(source)
        other = source.get("presenter") if kind == MODEL else None
        shown_by = "" if other is None else f" --presenter {other}"
        if kind == MODEL and model is not None and presenter != other:
            right = f"add{shown_by}" if shown_by else "leave --presenter out"
            shown = f"shown by the presenter {other!r}" if shown_by else "shown without a presenter of the author"
            raise SourceError(f"the trace is {shown}, so that its lanes are others; {right}")
        if kind == MODEL and model is not None:
            return load(model, presenter=presenter)
        if kind == MODEL:
            name = f"{source.get('file')}:{source.get('model')}{shown_by}"
            right = f"replay FILE --model {name}, or explore {name} --trace FILE"
            raise SourceError(f"the trace is of a model in a Python file, whose code runs only if you name it: {right}")
        if kind == REFINED:
            refinement = job_of(source.get("of"), model, presenter).refinement
            if refinement is not None:
                return refinement.job()
    except (ScenarioError, VariantError, ConfigError, KeyError, TypeError, ValueError) as error:
        raise SourceError(f"the source of the trace describes no run: {error}") from None
    raise SourceError(f"the source of the trace is of the kind {kind!r}; scenario or refined would be right")


def _job(
    text: str, read: Read, file: str, known: tuple[str, ...], added: frozenset[Variant], like: Release | None
) -> Job:
    document = read_yaml(text, file)
    files = Files(document, read, known)
    source = _source(file, text, files, added, like)
    keys = document.value
    if not isinstance(keys, dict):
        problem = "it is empty" if keys is None else "it is not a map of keys"
        raise ScenarioError(file, 0, "", problem, "write a scenario with the keys file and servers")
    return _kind_of(keys)(document, files, source, added, like).job()


def _kind_of(keys: Container[object]) -> type[ScenarioKind[Any]]:
    if RECIPE in keys:
        from checker.scenario.recipe import RecipeKind  # noqa: PLC0415

        return RecipeKind
    if SERVICE in keys:
        from checker.scenario.service import ServiceKind  # noqa: PLC0415

        return ServiceKind
    from checker.scenario.ensemble import EnsembleKind  # noqa: PLC0415

    return EnsembleKind


def _source(file: str, text: str, files: Files, added: frozenset[Variant], like: Release | None) -> dict[str, Json]:
    """Return the source of the job; `files.texts` fills up while the job is made."""
    source: dict[str, Json] = {"kind": KIND, "file": file, "text": text, "files": files.texts}
    if added:
        source["variants"] = sorted(variant.value for variant in added)
    if like is not None:
        source["like"] = str(like)
    return source


FOLDER = "scenarios"


def bundled() -> list[Path]:
    """The paths of all shipped scenarios, in the order of their folders and names."""
    folder = Path(str(files("spec"))) / FOLDER
    return sorted(folder.glob("*/*.yaml"))


def shipped(path: Path) -> Path:
    """The shipped scenario that a path names as `quorate list` does, unless there is a file with that path."""
    if len(path.parts) != 1 or path.suffix or path.exists():
        return path
    return next((scenario for scenario in bundled() if scenario.stem == path.name), path)
