"""Phrases that are not the field's words: ``python -m tests.words FILE...`` lists them.

Of a folder, the strings of its Python files that are no docstrings, and its templates.
"""

import ast
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


def strings(code: str) -> Iterator[str]:
    """Yield the strings of a Python file, which messages are made of, without docstrings."""
    for node in ast.walk(ast.parse(code)):
        body = getattr(node, "body", None)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Expr) and isinstance(body, list) and child in body:
                vars(child)["value"] = ast.Constant(0)  # a docstring, or that of an attribute
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def texts(path: Path) -> Iterator[tuple[Path, str]]:
    """Yield what people read in a file or folder."""
    if path.is_file():
        yield path, path.read_text()
        return
    for file in sorted(path.rglob("*.py")):
        yield file, "\n\n".join(strings(file.read_text()))
    for file in sorted(path.rglob("*.html")):
        yield file, file.read_text()


if __name__ == "__main__":
    for name in sys.argv[1:]:
        for file, text in texts(Path(name)):
            for one in found(text):
                print(f"{file}: {one}")
