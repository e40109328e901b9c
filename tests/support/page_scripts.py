"""Scripts that the tests of pages run in a browser; each returns what is wrong with the page."""

from pathlib import Path

CONTRAST = (Path(__file__).parents[1] / "browser" / "contrast.js").read_text(encoding="utf-8")
"""The texts whose contrast to the background is below 4.5, which WCAG 2.1 requires (success criterion 1.4.3)."""

SMALL = """() => [...document.querySelectorAll("button, select, input, summary, textarea")]
  .filter((each) => each.checkVisibility() && each.type !== "checkbox")
  .map((each) => [each.getBoundingClientRect(), each])
  .filter(([box]) => box.height < 40 || box.width < 40).map(([box, each]) => each.outerHTML)"""
"""What is pressed, and has less than 40 pixels in a direction."""

SIDEWAYS = "() => Math.max(0, document.documentElement.scrollWidth - innerWidth)"
"""The pixels by which the whole page scrolls to the side."""
