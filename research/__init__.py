"""Measurements behind one page of the documentation; no other part of the project needs them.

python -m research.herd    the cost of a leader's death, for several ways to watch
"""
