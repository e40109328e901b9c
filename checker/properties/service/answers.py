"""Expected answers: each answer to a script is the one that the scenario states."""

from __future__ import annotations

from checker.engine import Property
from checker.models.service.observations import Observations
from checker.present import wording
from checker.properties.service.projections import Run, flagged


def expected_answers(run: Run) -> Property:
    """Each answer with an expectation has the expected code, and the expected fields."""

    def look(memory: Observations) -> tuple[bool, tuple[str, str] | None]:
        if memory.unexpected is None:
            return memory.compared, None
        asked, answer = memory.unexpected
        return True, (wording.request(asked), answer)

    return flagged(run, "ExpectedAnswers", look, "an answer is not the expected one", ("request", "answer"))
