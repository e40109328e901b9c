"""The refinement of a finding of the oracle grain to single messages, as a separate job that can be replayed.

The finer job has the same servers, history, plan and faults at the fine grain, and the same properties. It is not
explored: the coarse run is the guide, and `checker.models.ensemble.refine` finds the messages.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from checker.engine import Discovery, Finding, Model
from checker.engine.semantics import read
from checker.job import Job
from checker.models.ensemble import Grain, NotRefinedError, Setup, ensemble, refine
from checker.present.ensemble import EnsemblePresenter
from checker.scenario.bounds import bounds_of

KIND = "refined"


@dataclass(frozen=True)
class OracleRefinement:
    """The refinement of a job of the oracle grain to the fine grain. See `checker.job.Refinement`."""

    coarse: Job
    setup: Setup

    def job(self) -> Job:
        """The job at the fine grain, to replay its runs."""
        return self._job(self._model())

    def found(self, found: Discovery) -> tuple[Job, Discovery]:
        """The same finding at the end of a fine run. Raises NotRefinedError."""
        if found.prop.kind.is_liveness:
            raise NotRefinedError("a run that never ends is told by the steps that were explored")
        model = self._model()
        path = refine(model, found.path)
        prop = model.properties[[each.name for each in model.properties].index(found.prop.name)]
        arguments = read(model, prop.reads, path[-1].row)
        finding = None if arguments is None else prop.check(*arguments)
        if not isinstance(finding, Finding):
            raise NotRefinedError(f"the run was told message by message, and {prop.name} finds nothing at its end")
        return self._job(model), Discovery(prop, finding, len(path) - 1, path)

    def _fine(self) -> Setup:
        return replace(self.setup, grain=Grain.FINE)

    def _model(self) -> Model:
        return ensemble(self.coarse.name, self._fine(), self.coarse.model.properties, keep_votes=True)

    def _job(self, model: Model) -> Job:
        return Job(
            name=self.coarse.name,
            model=model,
            presenter=EnsemblePresenter(model, self._fine()),
            source={"kind": KIND, "of": self.coarse.source},
            grain="fine, along a run by the oracle",
            bounds=bounds_of(self._fine(), 0),
        )


def with_refinement(job: Job, setup: Setup) -> Job:
    """The job, with its refinement if its grain is the oracle."""
    return replace(job, refinement=OracleRefinement(job, setup)) if setup.grain is Grain.ORACLE else job
