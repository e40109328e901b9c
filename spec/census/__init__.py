"""The census of the known defects of ZooKeeper: effects, releases, conditions and remedies.

from spec.census.table import CENSUS, defects_in
"""
