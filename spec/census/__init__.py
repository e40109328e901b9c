"""The census of the known defects of ZooKeeper: what each does, in which releases, when it hits, and what to do.

from spec.census.table import CENSUS, defects_in
"""
