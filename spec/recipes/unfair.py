"""Election on one ephemeral znode: its creator leads, all others watch it and try again when it is gone.

This is the shortest recipe, and it has the herd effect: with n clients the death of a leader notifies n - 1, and n - 2
of them ask in vain. The next leader is a matter of luck.

Rules of this module:

- The znode holds the id of its creator. A creation whose reply was lost is repeated. A refusal with NODE_EXISTS is
  followed by a read of the znode, which may be the candidate's own.
- A deletion whose reply was lost is not repeated without a read: by then the znode may belong to another candidate. The
  read waits until the server has caught up.
- The getData that reads the leader also sets the watch, so nothing can happen between the two.

Source: the requirements' "unfair election" (R15); `org.I0Itec.zkclient` users' usual way.
"""

import enum

import msgspec
from msgspec.structs import replace

from spec.effects import Observe, Step
from spec.recipes.events import (
    Answered,
    Ask,
    Connected,
    Effect,
    Event,
    Expired,
    Failed,
    Follows,
    Holds,
    HoldsNoMore,
    Join,
    Leave,
    Notified,
    RecipeStep,
    Suspended,
    Unanswered,
    Withdrawn,
)
from spec.recipes.member import Link
from spec.tree.data import OPEN_ACL_UNSAFE, Record
from spec.tree.replies import Code, Create2Reply, DataReply
from spec.tree.requests import Create2, CreateMode, Delete, GetData, Sync
from spec.variants import Variant


class CandidatePhase(enum.Enum):
    """The phase of a candidate."""

    OUT = "out"
    ENTERING = "entering"  # asked to create the znode
    READING = "reading"  # asked for the znode's owner, with a watch
    WAITING = "waiting"  # until the watch fires
    HOLDING = "holding"
    LEAVING = "leaving"  # asked to delete the znode
    SYNCING = "syncing"  # the reply to the deletion was lost: asked the server to catch up
    CHECKING = "checking"  # asked for the znode's current owner


class UnfairRules(msgspec.Struct, frozen=True):
    """The contested znode."""

    path: str
    variants: frozenset[Variant] = frozenset()


class Candidate(msgspec.Struct, frozen=True):
    """A client's part. `token` is the czxid of the znode it created, `holds` is its belief.

    `released`: it gave up what it held, and the znode has to be deleted before it is a candidate again.
    """

    phase: CandidatePhase = CandidatePhase.OUT
    link: Link = Link.CONNECTED
    wanted: bool = False
    lost: bool = False
    notified: bool = False
    holds: bool = False
    released: bool = False
    id: str = ""
    token: int | None = None

    @property
    def stays(self) -> bool:
        """Whether it wants to keep its znode."""
        return self.wanted and not self.released


def step(rules: UnfairRules, candidate: Candidate, event: Event) -> RecipeStep[Candidate]:
    """The step of a candidate on an event."""
    match event:
        case Join(id):
            fresh = id if candidate.phase is CandidatePhase.OUT else candidate.id
            return _go_on(rules, replace(candidate, wanted=True, id=fresh))
        case Leave():
            given_up = candidate.token is not None
            return _unwanted(rules, replace(candidate, wanted=False, released=given_up or candidate.released))
        case Answered():
            return _answered(rules, candidate, event)
        case Unanswered():
            lost = replace(candidate, lost=True)
            return _again(rules, lost) if candidate.link is Link.CONNECTED else Step(lost)
        case Notified():
            return _notified(rules, candidate, event)
        case Suspended():
            cut_off = replace(candidate, link=Link.SUSPENDED)
            return Step(cut_off) if Variant.LEAD_WHILE_SUSPENDED in rules.variants else _no_longer(cut_off, "suspended")
        case Expired():
            told = _no_longer(candidate, "expired").effects
            gone = () if candidate.wanted else (Observe(Withdrawn()),)
            return Step(Candidate(link=Link.EXPIRED, wanted=candidate.wanted), (*told, *gone))
        case Connected(resumed, id):
            return _connected(rules, replace(candidate, link=Link.CONNECTED), resumed, id)
        case _:
            return Step(candidate)


def _connected(rules: UnfairRules, candidate: Candidate, resumed: bool, id: str) -> RecipeStep[Candidate]:
    if not resumed or candidate.phase is CandidatePhase.OUT:
        return _go_on(rules, replace(candidate, id=id))
    if candidate.lost:
        return _again(rules, candidate)
    if candidate.phase is CandidatePhase.WAITING and Variant.NO_REREAD_ON_RECONNECT in rules.variants:
        return Step(candidate)
    # A holder checks that the znode is still its own; the others have lost their watch.
    return _read(rules, candidate)


def _again(rules: UnfairRules, candidate: Candidate) -> RecipeStep[Candidate]:
    """Ask again after a lost reply, now that there is a connection."""
    candidate = replace(candidate, lost=False)
    match candidate.phase:
        case CandidatePhase.ENTERING:
            # If the znode already exists, the refusal says so, and a read follows.
            return _enter(rules, candidate)
        case CandidatePhase.LEAVING | CandidatePhase.SYNCING | CandidatePhase.CHECKING:
            if Variant.RETRY_WITHOUT_LOOKING in rules.variants:
                return _leave(rules, candidate)
            return _ask(candidate, CandidatePhase.SYNCING, Sync(rules.path))
        case _:
            return _read(rules, candidate)


def _notified(rules: UnfairRules, candidate: Candidate, event: Notified) -> RecipeStep[Candidate]:
    if event.path != rules.path or candidate.link is not Link.CONNECTED:
        return Step(candidate)
    if candidate.phase is CandidatePhase.READING:
        return Step(replace(candidate, notified=True))
    return _enter(rules, candidate) if candidate.phase is CandidatePhase.WAITING else Step(candidate)


def _go_on(rules: UnfairRules, candidate: Candidate) -> RecipeStep[Candidate]:
    able = candidate.phase is CandidatePhase.OUT and candidate.wanted and candidate.link is Link.CONNECTED
    return _enter(rules, candidate) if able else Step(candidate)


def _unwanted(rules: UnfairRules, candidate: Candidate) -> RecipeStep[Candidate]:
    """Give up leadership immediately, and the znode as soon as possible."""
    if candidate.phase is CandidatePhase.OUT:
        return Step(candidate, (Observe(Withdrawn()),))
    released = _no_longer(candidate, "released")
    if candidate.link is not Link.CONNECTED:
        return released
    match candidate.phase:
        case CandidatePhase.HOLDING:
            return _told(released.effects, _leave(rules, released.state))
        case CandidatePhase.WAITING:
            return _told(released.effects, _out(released.state))
        case _:
            return released


def _no_longer(candidate: Candidate, why: str) -> RecipeStep[Candidate]:
    """Give up the belief that the candidate leads, and report it."""
    if not candidate.holds:
        return Step(candidate)
    return Step(replace(candidate, holds=False), (Observe(HoldsNoMore(why)),))


def _told(effects: tuple[Effect, ...], then: RecipeStep[Candidate]) -> RecipeStep[Candidate]:
    return Step(then.state, (*effects, *then.effects))


def _ask(candidate: Candidate, phase: CandidatePhase, record: Record) -> RecipeStep[Candidate]:
    return Step(replace(candidate, phase=phase, notified=False), (Ask(record),))


def _enter(rules: UnfairRules, candidate: Candidate) -> RecipeStep[Candidate]:
    record = Create2(rules.path, candidate.id.encode(), OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL)
    return _ask(replace(candidate, token=None, released=False), CandidatePhase.ENTERING, record)


def _read(rules: UnfairRules, candidate: Candidate) -> RecipeStep[Candidate]:
    return _ask(candidate, CandidatePhase.READING, GetData(rules.path, True))


def _leave(rules: UnfairRules, candidate: Candidate) -> RecipeStep[Candidate]:
    return _ask(candidate, CandidatePhase.LEAVING, Delete(rules.path, -1))


def _out(candidate: Candidate) -> RecipeStep[Candidate]:
    return Step(Candidate(link=candidate.link), (Observe(Withdrawn()),))


def _answered(rules: UnfairRules, candidate: Candidate, answer: Answered) -> RecipeStep[Candidate]:
    match candidate.phase:
        case CandidatePhase.ENTERING:
            return _entered(rules, candidate, answer)
        case CandidatePhase.READING:
            return _was_read(rules, candidate, answer)
        case CandidatePhase.LEAVING if answer.code in (Code.OK, Code.NO_NODE):
            return _free(rules, candidate)
        case CandidatePhase.SYNCING:
            return _ask(candidate, CandidatePhase.CHECKING, GetData(rules.path, False))
        case CandidatePhase.CHECKING:
            return _leave(rules, candidate) if _is_named(candidate, answer) else _free(rules, candidate)
        case _:
            return _refused(candidate, answer)


def _free(rules: UnfairRules, candidate: Candidate) -> RecipeStep[Candidate]:
    """Create the znode, which is not the candidate's own and may not exist, if it is wanted."""
    return _enter(rules, candidate) if candidate.wanted else _out(candidate)


def _is_named(candidate: Candidate, answer: Answered) -> bool:
    """Whether the znode that was read holds the candidate's id."""
    return isinstance(answer.reply, DataReply) and answer.reply.data == candidate.id.encode()


def _entered(rules: UnfairRules, candidate: Candidate, answer: Answered) -> RecipeStep[Candidate]:
    if isinstance(answer.reply, Create2Reply):
        return _is_own(rules, candidate, answer.reply.stat.czxid)
    return _read(rules, candidate) if answer.code is Code.NODE_EXISTS else _refused(candidate, answer)


def _was_read(rules: UnfairRules, candidate: Candidate, answer: Answered) -> RecipeStep[Candidate]:
    if not isinstance(answer.reply, DataReply):
        return _free(rules, candidate) if answer.code is Code.NO_NODE else _refused(candidate, answer)
    own = _is_named(candidate, answer)
    # A candidate with a token knows that the znode is its own without a read.
    looks = candidate.token is not None or Variant.RETRY_WITHOUT_LOOKING not in rules.variants
    if own and looks:
        return _is_own(rules, candidate, answer.reply.stat.czxid)
    if not candidate.wanted:
        return _out(candidate)
    if candidate.notified:
        return _enter(rules, candidate)
    told = Observe(Follows((answer.reply.data or b"").decode(errors="replace")))
    return Step(replace(candidate, phase=CandidatePhase.WAITING), (told,))


def _is_own(rules: UnfairRules, candidate: Candidate, token: int) -> RecipeStep[Candidate]:
    if not candidate.stays:
        return _leave(rules, candidate)
    held = replace(candidate, phase=CandidatePhase.HOLDING, token=token, holds=True)
    return Step(held) if candidate.holds else Step(held, (Observe(Holds(rules.path, token)),))


def _refused(candidate: Candidate, answer: Answered) -> RecipeStep[Candidate]:
    told = _no_longer(candidate, "refused").effects
    return Step(Candidate(link=candidate.link), (*told, Observe(Failed(answer.code)), Observe(Withdrawn())))
