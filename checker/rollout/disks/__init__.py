"""Disks that are not what they were: lost, old, or of another cluster.

hazards  the kinds of disks, the check of a request, and what is safe instead
search   the search for a loss where servers start with such disks
"""
