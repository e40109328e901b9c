"""The output of the planner.

    sentences           every verdict, reason and finding in words
    by_reconfig         the commands of `reconfig`, and its obstacles
    markdown            the document for a change request: notes, steps, story and evidence
    data                the same for machines, and the scenarios, traces and configuration files

Rules of this package: it judges nothing.
"""
