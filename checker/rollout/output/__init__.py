"""The output of the planner.

    sentences           every reason and verdict as a sentence
    markdown, sections  the document for a change request
    data                the same for machines, and the scenarios, traces and configuration files

Rules of this package: it judges nothing.
"""
