"""Phrases that are not the field's words: ``python -m tests.words FILE...`` lists them."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

PATTERNS = (
    r"anomaly-free experiments?",
    r"looks? (at least )?as different",
    r"ways? to look",
    r"seen most clearly",
    r"\bnobody\b",
    r"can be listed",
    r"how many at most",
    r"the way of an?",
    r"(is|are|was|were) told",
    r"told apart",
    r"(watched )?for ever",
    r"\blonely\b",
    r"\breadings\b",
    r"surpris(e|ing|ingly)",
    r"\bcrowds?\b",
    r"speak of|spoken of",
    r"(kernels?|rows?|columns?|tests?|famil(y|ies)) (says?|knows?|sees?|tells?|speaks?|looks?)\b",
    r"look at least",
    r"^(where|which rows|column by column):",
)
FOUND = re.compile("|".join(f"(?:{one})" for one in PATTERNS), re.IGNORECASE | re.MULTILINE)


def found(text: str) -> Iterator[str]:
    """Yield each phrase with what stands around it; a line may break inside it."""
    flat = re.sub(r"(?<=\S)\n[ \t>|#]*(?=[a-z])", " ", text)
    for match in FOUND.finditer(flat):
        around = flat[max(0, match.start() - 40) : match.end() + 40].replace("\n", " ")
        yield f"{match[0]!r} in {around!r}"


if __name__ == "__main__":
    for file in sys.argv[1:]:
        for one in found(Path(file).read_text()):
            print(f"{file}: {one}")
