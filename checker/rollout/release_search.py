"""Searches for an acknowledged write that the steps of a plan lose by a known defect of their releases.

Rules of this module:

- The steps are those that the plan recommends. A plan that is not safe by the protocol is not searched: it needs
  other steps first.
- The disk and the commits of these runs are late, since most defects need that.
- The runs without writes come first, because they are small. A violation ends each of the two searches.
  Without faults each first leader is explored. The others differ from the first one by their ids alone, so they are
  left out where its run was not finished. Under faults one leader is explored.
- A release that is the same before and after is judged in every stage; an upgrade has one stage, since it changes no
  member.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from checker.rollout.answer import Plan
from checker.rollout.assessor import splits
from checker.rollout.release_answer import SoftwareAnswer
from checker.rollout.releases import ReleaseChange
from checker.rollout.route import Order, PlanRoute, too_large
from checker.rollout.runs import RunResult, SafetyVerdict
from checker.rollout.scenarios import CRASHES, DISCONNECTS, PARTITIONS, Question, RunSpec
from checker.rollout.stages import Stage
from checker.rollout.steps import OrderError
from checker.rollout.work import Work
from spec.variants import Variant

ACKNOWLEDGED_SURVIVES = ("Leadership", "AcknowledgedLogCompleteness", "OneTxnPerZxid")
"""The invariants of clients with an answer.

LeaderLogCompleteness is not one: some defects let one server apply a write that no quorum has, so no client has an
answer for it. HistoryConsistency is not one either: a release may log one transaction twice, without harm.
"""

KINDS = (DISCONNECTS, CRASHES, PARTITIONS)

SpecOf = Callable[[PlanRoute, Order, Mapping[str, int]], RunSpec]
"""Makes the question about an order of a stage, under some faults."""


def check_releases(releases: ReleaseChange, stage: Stage) -> None:
    """Raises OrderError for an upgrade together with a change of members or of their roles."""
    if releases.is_upgrade and stage.old.view != stage.new.view:
        what = "the release and the members change together"
        raise OrderError(f"{what}; make two roll-outs of it, the upgrade and then the members", "to-release")


def judge_software(made: Plan, work: Work) -> None:
    """Judge the releases of the request along the steps that the plan recommends."""
    releases = made.request.releases
    if releases is None or made.outcome is not SafetyVerdict.SAFE or not made.direct.stage.remaining:
        return
    search = _SoftwareSearch(made, releases, work)
    quiet = tuple(search.quiet())
    made.software = SoftwareAnswer(releases, tuple(search.writing()), quiet)
    if made.software.finding is not None:
        staying = search.staying(made.software.finding)
        made.software = replace(made.software, staying=staying, culprits=tuple(search.culprits(made.software.finding)))


class _SoftwareSearch:
    """The runs about the releases of one plan."""

    def __init__(self, made: Plan, releases: ReleaseChange, work: Work) -> None:
        self._made, self._releases, self._work = made, releases, work
        faults = made.request.faults
        self._faults = tuple(splits(faults, KINDS)) if faults else ()
        self._parts = [
            part
            for part in made.advised
            if part.stage.remaining and not part.stage.gossips and not too_large(part.stage)
        ]

    def quiet(self) -> Iterator[RunResult]:
        """The runs without a write after the first step has begun."""
        return self._until_lost(self._quiet)

    def writing(self) -> Iterator[RunResult]:
        """The runs where a client writes during the steps, until one loses the write."""
        return self._until_lost(self._writing)

    def _until_lost(self, question: SpecOf) -> Iterator[RunResult]:
        """Without faults every first leader, then under each kind of fault one leader of each stage."""
        plain: dict[str, int] = {}
        stages = list(enumerate(self._parts))
        leaders = [(stage, part, order, plain) for stage, part in stages for order in part.orders]
        asked = [*leaders, *((stage, part, part.orders[0], each) for each in self._faults for stage, part in stages)]
        large: set[int] = set()
        for stage, part, order, faults in asked:
            if not faults and stage in large:
                continue
            result = self._work.ask(question(part, order, faults))
            yield result
            if result.outcome is SafetyVerdict.UNSAFE:
                return
            if result.outcome is SafetyVerdict.OPEN:
                large.add(stage)

    def staying(self, finding: RunResult) -> RunResult | None:
        """The question of this finding where every server restarts with its old release; None without an upgrade."""
        if not self._releases.is_upgrade:
            return None
        spec = replace(finding.spec, releases=ReleaseChange(self._releases.old, self._releases.old))
        with self._work.beside():
            return self._work.ask(spec)

    def culprits(self, finding: RunResult) -> Iterator[Variant]:
        """The defects that lose a write in the question of this finding when every server has that one alone."""
        for defect in self._releases.defects:
            spec = replace(finding.spec, releases=None, variants=(defect,))
            with self._work.beside():
                if self._work.ask(spec).outcome is SafetyVerdict.UNSAFE:
                    yield defect

    def _writing(self, part: PlanRoute, order: Order, faults: Mapping[str, int]) -> RunSpec:
        return self._spec(part, order, faults, Question.DEFECTS)

    def _spec(self, part: PlanRoute, order: Order, faults: Mapping[str, int], question: Question) -> RunSpec:
        return RunSpec(
            part.stage, order.steps, order.leader, question, faults, writes=1, elections=2,
            always=ACKNOWLEDGED_SURVIVES, down=self._made.request.down, way=part.way, releases=self._releases,
        )  # fmt: skip

    def _quiet(self, part: PlanRoute, order: Order, faults: Mapping[str, int]) -> RunSpec:
        """The write is made before the first step: it is on every disk, and applied."""
        spec = self._spec(part, order, faults, Question.QUIET_DEFECTS)
        running = sorted(part.stage.running - self._made.request.down)
        return replace(spec, opening=({"write": order.leader}, {"settle": running}))
