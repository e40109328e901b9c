"""The gallery: a page for each scenario, with what it came to and every run that was found, for people to read.

`page_of` makes a page of an exploration, `index_of` the page that leads to all of them; nothing here explores. What
stands on a page is the same on every machine: no times, no sizes.
"""

from checker.gallery.index import index_of
from checker.gallery.page import Page, page_name, page_of

__all__ = ["Page", "index_of", "page_name", "page_of"]
