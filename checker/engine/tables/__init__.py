"""The results of a model's functions as integers: `Tables` answers the questions of the kernels.

`layout` numbers the parts of a model in advance, `interner` calls the model's functions and numbers values, operations
and effects, and `verdicts` numbers the answers of properties. An `observer` follows what the tables learn.
"""

from checker.engine.tables.interner import Node
from checker.engine.tables.tables import Tables

__all__ = ["Node", "Tables"]
