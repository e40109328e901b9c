"""The output of the planner.

    sentences           every verdict, reason and finding in words
    markdown            the document for a change request: notes, steps, story and evidence
    data                the same for machines, and the scenarios, traces and configuration files

Rules of this package: it judges nothing.
"""
