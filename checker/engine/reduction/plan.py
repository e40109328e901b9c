"""The processes and channels of a model in numbers, as the kernel that selects stubborn sets takes them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]


class StubbornPlan(NamedTuple):
    """The arrays of `kernels.stubborn_kernels`, which has their meaning; all u32, and `owners` u8.

    A plan without processes selects nothing, so that all moves are followed.
    """

    owners: Array
    processes: Array
    inputs: Array
    outputs: Array
    questions: Array
    sides: Array

    @classmethod
    def empty(cls) -> StubbornPlan:
        """The plan of a search that follows all moves."""
        return cls(
            np.zeros(0, np.uint8),
            np.zeros((0, 5), np.uint32),
            np.zeros((0, 4), np.uint32),
            *(np.zeros(0, np.uint32) for _ in range(3)),
        )

    def room(self) -> tuple[Array, Array, Array, Array]:
        """Arrays for one thread: a word for each channel, and three for each process."""
        channels, processes = len(self.inputs), len(self.processes)
        return (
            np.zeros(channels, np.uint32),
            np.zeros(processes, np.uint32),
            np.zeros(processes, np.uint64),
            np.zeros(processes, np.uint64),
        )
