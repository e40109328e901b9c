"""The explorer without a server: one file with a page and the whole space of its scenarios.

space      every state and move of a job as JSON
page       the page of the explorer and that data, as one file
"""

from checker.explorer.export.page import export

__all__ = ["export"]
