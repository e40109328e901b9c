"""The gallery: a page for each scenario, with its verdict and every run that was found, for human readers.

`page_of` makes the page of an exploration, `index_of` the front page with links to all of them, and `write_gallery`
explores scenarios and writes their pages. The content of a page is the same on every machine: it has no times and no
sizes.
"""

from checker.gallery.page import Page, index_of, page_name, page_of

__all__ = ["Page", "index_of", "page_name", "page_of"]
