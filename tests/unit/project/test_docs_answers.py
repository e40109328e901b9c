"""Each answer is one short page in both languages, with the same commands and evidence."""

import re
from pathlib import Path

import pytest

ANSWERS = Path(__file__).parents[3] / "docs/answers"
LANGUAGES = ("en", "zh")
NAMES = sorted({page.name for language in LANGUAGES for page in (ANSWERS / language).glob("*.md")})
EACH_ANSWER = pytest.mark.parametrize("name", NAMES)
CONSOLE = re.compile(r"^```console\n.*?^```\n", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
# A character of Chinese counts as a word, as in a word processor.
WORD = re.compile(r"[\u4e00-\u9fff]|[^\s\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]+")
LIMITS = {"en": 400, "zh": 700}


def text(language: str, name: str) -> str:
    return (ANSWERS / language / name).read_text(encoding="utf-8")


@EACH_ANSWER
@pytest.mark.parametrize(("language", "other"), [LANGUAGES, LANGUAGES[::-1]])
def test_the_first_line_leads_to_the_other_language(name: str, language: str, other: str) -> None:
    assert f"](../{other}/{name})" in text(language, name).splitlines()[0]


@EACH_ANSWER
@pytest.mark.parametrize("language", LANGUAGES)
def test_an_answer_is_short(name: str, language: str) -> None:
    page = text(language, name)
    words = len(page.split()) if language == "en" else len(WORD.findall(LINK.sub("]", page)))
    assert words <= LIMITS[language]


@EACH_ANSWER
def test_both_languages_have_the_same_commands_with_their_output(name: str) -> None:
    english, chinese = (CONSOLE.findall(text(language, name)) for language in LANGUAGES)
    assert english and english == chinese


@EACH_ANSWER
def test_both_languages_have_the_same_links(name: str) -> None:
    english, chinese = (sorted(LINK.findall(text(language, name))[2:]) for language in LANGUAGES)
    assert english == chinese
