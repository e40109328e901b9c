"""The releases of ZooKeeper that run before and after a roll-out, and the known defects that they bring into it.

releases  the releases of a request
answers   the answer about them, with its runs
search    the search for a write that is lost by a defect
"""
