"""Apache's Zab.tla as a search for TLC: an instance, and the module and the configuration that choose it.

The file belongs to ZooKeeper's repository, and not to this project. `benchmarks.tlc.zab` is the same model for
our search.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from spec.text import required_integer

NO_LIMIT = "-"
PARAMETERS = ("MaxTimeoutFailures", "MaxTransactionNum", "MaxEpoch", "MaxRestarts")
MODEL_VALUES = """
LOOKING FOLLOWING LEADING ELECTION DISCOVERY SYNCHRONIZATION BROADCAST NullPoint
CEPOCH NEWEPOCH ACKEPOCH NEWLEADER ACKLD COMMITLD PROPOSE ACK COMMIT
"""
INVARIANTS = """
ShouldNotBeTriggered Leadership1 Leadership2 PrefixConsistency Integrity Agreement TotalOrder LocalPrimaryOrder
GlobalPrimaryOrder PrimaryIntegrity
"""


class Instance(NamedTuple):
    """The number of servers, and the constants `Parameters` in the order of the file; None: unlimited."""

    servers: int = 3
    timeouts: int = 1
    transactions: int = 1
    epochs: int | None = None
    restarts: int = 0

    @staticmethod
    def of(text: str) -> "Instance":
        """An instance from a text such as "3,1,2,-,0"; absent numbers are those of "3,1,1,-,0". Raises ValueError."""
        first = Instance()
        words = [*text.split(","), *str(first).split(",")[text.count(",") + 1 :]]
        if len(words) != len(first):
            raise ValueError(f"{text!r} has {len(words)} numbers, and an instance {len(first)}, as in {first}")
        epochs = None if words[3] == NO_LIMIT else required_integer(words[3], 0, 10)
        timeouts, transactions, restarts = (required_integer(words[place], 0, 99) for place in (1, 2, 4))
        return Instance(required_integer(words[0], 1, 9), timeouts, transactions, epochs, restarts)

    def __str__(self) -> str:
        return ",".join(NO_LIMIT if constant is None else str(constant) for constant in self)


NOTHING = Instance(servers=1, timeouts=0, transactions=0)
"""An instance of two states, for the time of a start."""


@dataclass(frozen=True)
class Specification:
    """The name of a module, and the files of a search of it by TLC by their names, with the configuration."""

    module: str
    files: Mapping[str, str]


def official(file: Path, instance: Instance, symmetric: bool) -> Specification:
    """Zab.tla with an instance of its constants, its ten invariants, and perhaps the symmetry of its servers."""
    names = [f"s{number}" for number in range(1, instance.servers + 1)]
    limits = zip(PARAMETERS, instance[1:], strict=True)
    record = ", ".join(f"{name} |-> {limit}" for name, limit in limits if limit is not None)
    module = (
        f"---- MODULE Instance ----\nEXTENDS {file.stem}\nLimits == [{record}]\nNames == Permutations(Server)\n====\n"
    )
    configuration = "".join(
        (
            "SPECIFICATION Spec\nCHECK_DEADLOCK FALSE\nCONSTANTS\n",
            *(f"{name} = {name}\n" for name in chain(names, MODEL_VALUES.split())),
            f"Server = {{{', '.join(names)}}}\nParameters <- Limits\nINVARIANTS{INVARIANTS}",
            "SYMMETRY Names\n" * symmetric,
        )
    )
    files = {file.name: file.read_text(encoding="utf-8"), "Instance.tla": module, "Instance.cfg": configuration}
    return Specification("Instance", files)
