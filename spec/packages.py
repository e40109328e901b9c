"""The names of the distributions, and the packages that some parts need.

A message about a missing package names that package, and never an extra of this program: an index may have a stranger's
program under a name that is not this distribution's.
"""

from collections.abc import Mapping
from shlex import quote

DISTRIBUTION = "zk-quorate"
"""The name on an index. Another program there has the name Quorate."""
NODE = "zk-quorate-node"
"""The distribution of the node alone."""

EXTRAS: Mapping[str, tuple[str, ...]] = {
    "kernels": ("numba>=0.68,<0.69",),
    "proofs": ("cvc5>=1.2", "z3-solver>=4.13"),
    "fast": ("uvloop>=0.19",),
    "recipes": ("kazoo>=2.10",),
    "plots": ("matplotlib>=3.8",),
    "cluster": ("ray>=2.30",),
}
"""The packages of each extra of the distribution."""

NAMES = {"z3": "z3-solver"}
"""The package of a module that has another name."""


def needed(module: str | None, why: str = "this command") -> str | None:
    """Return the message that a missing module is needed, with the way to install it; None for a module of no extra."""
    package = NAMES.get(top := (module or "").partition(".")[0], top)
    for requirements in EXTRAS.values():
        if package in (requirement.partition(">")[0] for requirement in requirements):
            return f"{why} needs {package}, which is not installed: pip install {' '.join(map(quote, requirements))}"
    return None
