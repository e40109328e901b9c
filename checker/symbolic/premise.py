"""The assumptions on quorums under which abstract Zab is safe. Nothing here loads z3."""

from enum import Enum


class Premise(Enum):
    """An assumption on quorums; the value is the sentence for the reader."""

    VIEWS = "every quorum of every view in use meets every quorum of every view in use"
    USED = (
        "each quorum used to commit in an epoch meets each quorum used to establish a later one, and each two used "
        "to establish one epoch meet"
    )
    SERVED = "as before, but a reign need meet only the reigns since one that has served"
    STAGED = "a roll-out in stages: quorums of neighbouring stages meet, and the operator keeps the rule"
    ONE_GO = (
        "a roll-out in stages with servers first started in a later stage: quorums of neighbouring stages meet if "
        "their servers run in both, and the operator keeps the rule"
    )

    @property
    def label(self) -> str:
        """The name in reports and of a folder."""
        return self.name.lower().replace("_", "-")

    @property
    def is_rollout(self) -> bool:
        """The premise is about a roll-out in stages."""
        return self in {Premise.STAGED, Premise.ONE_GO}
