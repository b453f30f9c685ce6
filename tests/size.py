"""Lines of code in src by folder: ``make size``.

Blank lines, comments, imports and docstrings do not count.
"""

import ast
import io
import tokenize
from collections import Counter
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "sparker"
NO_CODE = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENDMARKER,
}  # fmt: skip


def lines_of_code(source: str) -> int:
    """Return the number of lines that hold code.

    >>> lines_of_code('import os\\n\\n\\ndef f():  # one\\n    "What it does."\\n    return 1\\n')
    2
    """
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    found = {
        line
        for token in tokens
        if token.type not in NO_CODE
        for line in range(token.start[0], token.end[0] + 1)
    }
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom) or (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            found -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(found)


def by_folder() -> Counter[str]:
    """Return the lines of code of each folder of the package, and of its single modules."""
    found: Counter[str] = Counter()
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).parts
        found[parts[0] if len(parts) > 1 else "(modules)"] += lines_of_code(path.read_text())
    return found


if __name__ == "__main__":
    sizes = by_folder()
    for folder, n in [*sizes.most_common(), ("all", sizes.total())]:
        print(f"{n:7,}  {folder}")
