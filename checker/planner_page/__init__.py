"""The page of the planner: a local web page that judges a change of two sets of files, and shows the plan.

`server` answers each request of the page: HTTP on the loopback interface only, by `checker.local_page`.

Rules of this package:

- It judges nothing: `checker.rollout` plans, and the answers are those of `python -m checker rollout`, from the same
  cache.
- The files are in a temporary folder while they are read. Only the answer remains, in the cache.
- No name in the files turns into a path outside that folder, and no text of the files turns into markup.
"""

from checker.planner_page.server import PlannerHandlers, PlannerServer

__all__ = ["PlannerHandlers", "PlannerServer"]
