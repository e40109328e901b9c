"""Measurements behind one page of the documentation; no other part of the project needs them.

python -m research.herd        the cost of a leader's death, for several ways to watch
python -m research.reconfig    reconfigurations of real servers, for the page of facts
python -m research.zetcd       a proxy over etcd, compared with the specification
"""
