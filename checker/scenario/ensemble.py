"""Scenarios of ensembles: the model with its properties, restrictions and bounds, and its refinement to messages.

The refinement of a finding of the oracle grain is a separate job that can be replayed. It has the same servers,
history, plan and faults at the fine grain, and the same properties. It is not explored: the coarse run is the guide,
and `checker.models.ensemble.refine` finds the messages.

Rules of this module: a bound is described in words even if it is the default, since "no violation" holds only within
it. The parts of the server that the specification of leading and following omits are listed too, as the modules of
`spec.zab` and of the model state them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from checker.engine import Discovery, Model, Property
from checker.engine.semantics import finding_at
from checker.job import Job, Json, Likeness
from checker.kit.actions import UNLIMITED
from checker.models.ensemble import Grain, HistoryError, NotRefinedError, Setup, ensemble, refine
from checker.models.ensemble.actions import BUDGETS, Section, ServerAction
from checker.models.ensemble.rules import may_be_silent
from checker.present.ensemble import EnsemblePresenter
from checker.properties import ENSEMBLE_PROPERTIES
from checker.scenario.ensemble_setup import setup_of, with_release, with_variants
from checker.scenario.files import Files
from checker.scenario.kind import ScenarioKind
from checker.scenario.restrictions import with_fast_network, with_opening
from checker.scenario.schema import Scenario
from checker.scenario.servers import list_servers
from checker.scenario.yaml_lines import LikeError, NoEffect, YamlDocument, like_named, nearest, variant_names
from spec.zab.state import Rollover, ZabRules

FAST = "fast"
NETWORKS = ("any", FAST)
OF_DEFECTS = frozenset({ServerAction.SYNC_LATE, ServerAction.RESUME})
"""The actions that exist with some defects only; those of a release need not all show in a run."""
REFINED = "refined"
"""The kind of the source of a refined job."""


class EnsembleKind(ScenarioKind[Scenario]):
    """A scenario of an ensemble."""

    schema = Scenario

    def __init__(self, document: YamlDocument, files: Files, *rest: Any) -> None:
        super().__init__(document, files, *rest)
        self.keys = list_servers(self.keys, document, files)

    def describe(self) -> Job:
        """The job of the ensemble, with its restrictions."""
        setup = with_variants(setup_of(self.keys, self.document, self.files, self.variants()), self.added)
        setup, like = self._with_release(setup)
        model = self._model(setup, tuple(self.properties(ENSEMBLE_PROPERTIES, setup)))
        if self._is_fast(setup):
            model = with_fast_network(model, setup)
        model, steps = with_opening(model, self.keys.opening, setup, self.document)
        fast = self.keys.network == FAST
        return ensemble_job(self.name, model, setup, self.source, opening=steps, fast=fast, like=like)

    def _with_release(self, setup: Setup) -> tuple[Setup, Likeness | None]:
        """Add the defects of the release that the scenario or the caller names.

        Raises ScenarioError for the key of the scenario, and LikeError for the release of the caller.
        """
        key = self.keys.like
        if key is None:
            return (setup, None) if self.like is None else with_release(setup, self.like)
        try:
            with_defects = with_release(setup, like_named(key))
        except LikeError as error:
            raise self.document.error(("like",), error.reason.what, error.reason.right) from None
        if self.like is not None and str(self.like) != key:
            raise LikeError(str(self.like), NoEffect(f"the scenario is like {key}", "leave one of them out"))
        return with_defects

    def _model(self, setup: Setup, properties: tuple[Property, ...]) -> Model:
        try:
            return ensemble(self.name, setup, properties)
        except HistoryError as error:
            raise self.document.error(("history",), str(error), error.right) from None

    def _is_fast(self, setup: Setup) -> bool:
        network = self.keys.network
        if network not in NETWORKS:
            problem = f"{network[:60]!r} is not a kind of network"
            raise self.document.error(("network",), problem, nearest(network, NETWORKS))
        if network == FAST and setup.grain is Grain.ORACLE:
            raise self.document.error(("network",), "the oracle has no messages", "write grain: fine")
        return network == FAST


def ensemble_job(
    name: str,
    model: Model,
    setup: Setup,
    source: Mapping[str, Json],
    *,
    opening: int = 0,
    fast: bool = False,
    like: Likeness | None = None,
) -> Job:
    """The job of a model of an ensemble, with its refinement if its grain is the oracle; see `bounds_of`."""
    has_release = like is not None or any(release.defects for release in setup.releases)
    job = Job(
        name=name,
        model=model,
        presenter=EnsemblePresenter(model, setup),
        source=source,
        grain=setup.grain.value,
        bounds=bounds_of(setup, opening, fast=fast, like=like),
        actions=model.actions,
        allowed_silent=may_be_silent(setup) | (OF_DEFECTS if has_release else frozenset()),
        like=like,
    )
    return replace(job, refinement=OracleRefinement(job, setup)) if setup.grain is Grain.ORACLE else job


@dataclass(frozen=True)
class OracleRefinement:
    """The refinement of a job of the oracle grain to the fine grain. See `checker.job.FinerGrain`."""

    coarse: Job
    setup: Setup

    def job(self) -> Job:
        """The job at the fine grain, to replay its runs."""
        return self._job(self._model())

    def found(self, found: Discovery) -> tuple[Job, Discovery]:
        """The same finding at the end of a fine run. Raises NotRefinedError."""
        if found.prop.kind.is_liveness:
            raise NotRefinedError("an endless run has only the steps of the oracle")
        model = self._model()
        path = refine(model, found.path)
        prop = model.properties[[declared.name for declared in model.properties].index(found.prop.name)]
        finding = finding_at(model, prop, path[-1].row)
        if finding is None:
            raise NotRefinedError(f"the run message by message does not end in a finding of {prop.name}")
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
            source={"kind": REFINED, "of": self.coarse.source},
            grain="fine, along a run by the oracle",
            bounds=bounds_of(self._fine(), 0, like=self.coarse.like),
            like=self.coarse.like,
        )


NO_FAULTS = "no faults"
"""The bound of a model without faults; a report may leave it out."""
_LEFT_OUT = (
    "a whole connection ends by a fault or by a decision of either side: early time-outs are drops of it",
    "a leader notices the loss of a learner when it has read all that the learner sent",
    "the handlers of a leader take no time of their own",
    "acceptedEpoch and currentEpoch are each written in one step with the packet that acknowledges them",
    "a snapshot is taken only of what a SNAP or a TRUNC left in memory",
)
"""The parts of the real server that the specification of leading and following, and of its connections, omits."""


def bounds_of(setup: Setup, opening: int, *, fast: bool = False, like: Likeness | None = None) -> tuple[str, ...]:
    """The bounds of a setup; `opening` is the number of steps in a fixed order, `fast` selects the fast network.

    The variants of `like` are named with their release.
    """
    lines = [] if setup.zab else ["epochs and zxids stay as given: only the election is explored"]
    lines.append(_at_most(Section.FAULTS, setup) or NO_FAULTS)
    if setup.plan:
        lines.append(f"the operator's {len(setup.plan)} actions in their order")
    if setup.grain is Grain.FINE:
        lines += _channels(setup)
    else:
        lines.append("an election is one step, which leaves a leader and a quorum of its view that follows it")
    if setup.zab:
        lines += _leading_and_following(setup, setup.zab)
    if setup.prologue:
        lines.append("one history before the first state, everything on its way arriving at once")
    if fast:
        lines.append("no wait ends and no operator acts while a notification is in flight")
    if opening:
        lines.append(f"the first {opening} steps in one order")
    if like is not None:
        lines.append(f"like {like.release}: with {', '.join(like.variants)}")
        lines += [f"like {like.release}, without {name}: {reason}" for name, reason in like.idle.items()]
    lines += [
        f"{release.name}: with {variant_names(sorted(release.defects, key=lambda one: one.value)) or 'no known defect'}"
        for release in setup.releases
        if len(setup.releases) > 1 or release.defects
    ]
    variants = [variant for variant in setup.variants if like is None or variant.value not in like.variants]
    if variants:
        lines.append(f"with {variant_names(variants)}")
    return tuple(lines)


def _at_most(section: Section, setup: Setup) -> str:
    """The events that the budgets of a section allow; empty if they allow none."""
    limited = {name: count for name, count in setup.budgets.by_name.items() if count < UNLIMITED}
    events = [BUDGETS[name].count(count) for name, count in limited.items() if BUDGETS[name].section is section]
    return f"at most {', '.join(events)}" if events else ""


def _leading_and_following(setup: Setup, zab: ZabRules) -> list[str]:
    elections = setup.budgets.elections
    rows = [_at_most(Section.WORKLOAD, setup) or "no client asks for anything"]
    if setup.budgets.writes:
        rows.append(f"clients write {'at any server that serves' if setup.clients_anywhere else 'at the leader'}")
    if zab.zxids is not None:
        rows.append(f"transactions that each epoch has zxids for: {zab.zxids}")
    if zab.rollover is not Rollover.ELECTION:
        rows.append(f"an epoch ends without an election ({zab.rollover.value})")
    if setup.budgets.restores:
        rows.append("a snapshot is restored at all servers in one step, while nothing waits and without earlier files")
    if setup.grain is Grain.ORACLE:
        rows.append(f"at most {BUDGETS['elections'].count(elections)}")
        if setup.discovery_in_one_step:
            rows.append("FOLLOWERINFO, LEADERINFO and ACKEPOCH of those who elect arrive in the step of their election")
    if zab.asynchronous_disk:
        rows.append("a disk is late by any time and keeps the order: a crash loses what is not on it")
    else:
        rows.append("a disk is never late")
    rows.append(f"what is committed is applied {'later, in order' if zab.asynchronous_commits else 'at once'}")
    changes = "no sessions, no change of an address, and all servers may be reconfigured"
    return [*rows, *_LEFT_OUT, changes if setup.reconfigs else "no sessions and no reconfiguration"]


def _channels(setup: Setup) -> list[str]:
    rules = setup.channels
    lines = [
        f"no election beyond round {setup.round_limit}",
        f"at most {rules.capacity} in flight from one server to another, and one queued",
    ]
    if setup.budgets.notification_timeouts == UNLIMITED:
        lines.append("notification time-outs without limit")
    if rules.merge_repeats:
        lines.append("a notification equal to the newest in flight is not sent twice")
    if not rules.resend:
        lines.append("the last notification is not sent again on reconnection")
    return lines
