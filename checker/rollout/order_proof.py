"""The proof that one order of restarts is safe for any faults, although quorums of the two files may be disjoint.

It applies the theorem about roll-outs (`checker.symbolic.zab.rollout`) to the steps of a stage. The theorem has stages
of files and of servers that run: quorums of equal and neighbouring stages must meet, as far as their servers run. Three
servers that grow to five in the order 4, 1, 3, 2, 5 are such a roll-out:

    stage  begins with  file    servers that run
    0                   before  1, 2, 3
    1      start 4      after   1, 2, 3, 4
    2      start 5      after   1, 2, 3, 4, 5

Rules of this module:

- Starts at the end of an order are the last stage, if every server that runs has the new file by then. All other steps
  are stage 1. A server that is stopped counts as running: nothing keeps it from starting again.
- There is no fourth stage. It would need a leader that was elected in the third, and a leader leads on while servers
  start.
- The stages of a plan are roll-outs one after the other. The rule between them is a condition as well, whatever proof
  or run covers each of them.
- The rest of an interrupted roll-out has the same proof. Its steps are those of stage 1 that are left, in any order,
  and the last starts. Once every server that runs has the new file, the rest is a roll-out of its own with one file.
- The operator keeps a condition before each stage. It must be possible: the servers that run are a quorum by then. A
  person keeps it, so only the way of one server after the other has a proof with three stages.
- No proof is claimed for what the theorem does not speak of: a standalone server, configurations with versions,
  a server that looks for a leader before the first step, and one that is counted as a voter while it runs as an
  observer. Nor is one for an order that leaves out a server, which may be down.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from checker.rollout.orders import START, STOP, Steps, Way, proof_covers
from checker.rollout.stages import Stage
from checker.symbolic.disjoint import RunningView, disjoint_stages
from spec.quorum import Sid, View


@dataclass(frozen=True)
class StageCondition:
    """What the operator checks before a step, by its number from 1: `running` follow one leader, which serves.

    The number is 0 for the condition before an interrupted roll-out, which has been kept or not. With `renewed`, each
    of them has its new file, and `stopped` servers stay stopped.
    """

    step: int
    running: tuple[Sid, ...]
    renewed: bool
    stopped: tuple[Sid, ...] = ()


@dataclass(frozen=True)
class OrderProof:
    """The stages of the theorem for one order, and the condition before each stage except the first."""

    stages: tuple[RunningView, ...]
    conditions: tuple[StageCondition, ...]

    @property
    def by_step(self) -> dict[int, StageCondition]:
        """The condition before each step that has one, by the number of the step from 1."""
        return {condition.step: condition for condition in self.conditions}

    def covers_way_back(self, old: View, step: int) -> bool:
        """Whether the way back after a step, by its number, to files with this view is covered.

        In a stage of the theorem every server may have the file of that stage or of the one before.
        """
        pairs = zip(self.stages, self.conditions, strict=False)  # each condition with the stage that it ends
        return all(before.view == old for before, condition in pairs if condition.step <= step)


def condition_between(done: Sequence[Stage], stage: Stage, down: frozenset[Sid] = frozenset()) -> StageCondition:
    """The condition before a stage of a plan, behind the stages that are `done`: the rule of the theorem about stages.

    Servers that left in any of these, and those that are `down`, stay stopped: their files are older ones.
    """
    running = stage.running - down
    stopped = frozenset(sid for earlier in done for sid in earlier.removed) | (down & stage.old.members)
    return StageCondition(1, tuple(sorted(running)), renewed=True, stopped=tuple(sorted(stopped - running)))


def order_proof(stage: Stage, steps: Steps, way: Way) -> OrderProof | None:
    """The proof of an order; None if the theorem does not apply, or its premise does not hold.

    Raises checker.symbolic.disjoint.UndecidedError if the comparison is given up.
    """
    changed = {step.sid for step in steps}
    excluded = stage.standalone or stage.gossips or stage.looking
    if not steps or excluded or not changed.issuperset(stage.remaining):
        return None
    if not proof_covers(way, stage, steps):
        return None
    divisions = (_in_stages(stage, steps, late) for late in range(_most_late_starts(stage, steps, way), -1, -1))
    return next(
        (division for division in divisions if _may_be_kept(division) and disjoint_stages(division.stages) is None),
        None,
    )


def _in_stages(stage: Stage, steps: Steps, late: int) -> OrderProof:
    """The stages of an order, whose last starts are the last stage: `late` of them."""
    first = len(steps) - late
    running_first = stage.started
    running = running_first | _started(steps[:first])
    stages = [RunningView(stage.old.view, running_first), RunningView(stage.new.view, running)]
    conditions = [StageCondition(0 if stage.applied else 1, tuple(sorted(stage.running)), renewed=False)]
    if late:
        stopped = running_first - stage.new.members
        up = tuple(sorted(running - stopped))
        conditions.append(StageCondition(first + 1, up, renewed=True, stopped=tuple(sorted(stopped))))
        stages.append(RunningView(stage.new.view, running | _started(steps)))
    if late == len(steps):  # every server that runs has the new file: what came before is behind the condition
        del stages[0], conditions[0]
    return OrderProof(tuple(stages), tuple(conditions))


def _started(steps: Steps) -> frozenset[Sid]:
    return frozenset(step.sid for step in steps if step.action == START)


def _most_late_starts(stage: Stage, steps: Steps, way: Way) -> int:
    """The most starts at the end that may be a stage: all servers have the new file, and the last one is waited for."""
    late = len(list(takewhile(lambda step: step.action == START, reversed(steps))))
    before = steps[: len(steps) - late]
    waits = all(step.wait or step.action == STOP for step in before[-1:])
    renewed = stage.renewed | {step.sid for step in before}
    changes = bool(before or stage.applied)
    return late if way is Way.ONE_BY_ONE and changes and waits and renewed >= stage.running else 0


def _may_be_kept(proof: OrderProof) -> bool:
    """Whether each condition is possible: the servers that run are a quorum by the file of the stage before."""
    return all(
        not condition.step or before.view.contains_quorum(frozenset(condition.running) & before.view.voters)
        for before, condition in zip(proof.stages, proof.conditions, strict=False)
    )
