"""The job of a model, for reports and traces."""

from collections.abc import Iterator, Mapping

from checker.engine.model import Model
from checker.job import Job, Json, Presenter
from checker.kit.actions import FAULTS, Faults
from checker.kit.environment import ENVIRONMENT
from checker.present.generic import DefaultPresenter


def job_of_model(model: Model, source: Mapping[str, Json] | None = None, presenter: Presenter | None = None) -> Job:
    """The job of a model, with the presenter for any model unless another is given.

    A trace with an empty source, which is the default, can be shown, and not replayed in another process.

        trace_of(job_of_model(model), exploration.found["OneLeader"])
    """
    shown_by = presenter or DefaultPresenter(model)
    return Job(model.name, model, shown_by, source or {}, bounds=tuple(_bounds(model)), actions=model.actions)


def _bounds(model: Model) -> Iterator[str]:
    """The faults of the environment of a model, in words."""
    for column in model.columns:
        if column.name == FAULTS and isinstance(column.initial, Faults):
            yield f"at most {column.initial.left.in_words(ENVIRONMENT) or 'no fault'}"
