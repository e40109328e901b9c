"""The operations of a model by their origin: the rules and steps that send them, as far as the tables have seen.

Two questions about a channel depend on the origin of an operation:

- whether it comes to the receiver only *behind* the oldest message, because the channel's rule alone sends it;
- whether it comes to the channel from *others*: neither from its rule nor from a step of its sender.
"""

from __future__ import annotations

from collections import defaultdict

from checker.engine.reduction.eligible import EligibleChannel


class OperationOrigins:
    """For each channel, by its position: the known operations `behind` on its receiver, and of `others` on itself.

    `changed` are the channels whose `others` have grown, and `moved` the operations that are no longer behind a
    channel, since these sets were last cleared.
    """

    def __init__(self, channels: list[EligibleChannel]) -> None:
        self._channels = channels
        self._senders: defaultdict[int, set[str]] = defaultdict(set)
        self.behind: list[set[int]] = [set() for _ in channels]
        self.others: list[frozenset[int]] = [frozenset() for _ in channels]
        self.changed: set[int] = set()
        self.moved: set[int] = set()

    def add(self, actor: int, operation: int, source: str) -> None:
        """Note that a rule or a step, named by `source`, sends an operation to the actor at this position."""
        senders = self._senders[operation]
        if source in senders:
            return
        for number, channel in enumerate(self._channels):
            if actor in channel.receivers:
                self._add_to_receiver(number, operation, is_first=not senders, is_own=source in channel.rules)
            if actor in channel.actors and source not in channel.rules | channel.steps:
                self.others[number] |= {operation}
                self.changed.add(number)
        senders.add(source)

    def _add_to_receiver(self, number: int, operation: int, *, is_first: bool, is_own: bool) -> None:
        if is_own and is_first:
            self.behind[number].add(operation)
        elif not is_own and operation in self.behind[number]:
            self.behind[number].discard(operation)
            self.moved.add(operation)
