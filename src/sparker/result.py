"""What a test gives back: a result that can show itself."""

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from sparker.findings.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class TestResult(Result):
    """The outcome of ``sparker.test``: a ``findings.result.Result`` that can show itself."""

    def report(self, path: str | os.PathLike[str], **options: Any) -> None:
        """Write an HTML report that opens anywhere, without internet.

        ``options`` are those of ``sparker.report.render``: ``texts``, ``images`` and ``names``,
        one a data row; ``observables`` and ``reference_observables``, numbers a row by name that
        are not among the columns; ``title``, ``command``.
        """
        from sparker.report import write  # here, so that only reports wait for their charts

        write(path, self, **options)

    def with_pictures(self, files: Sequence[str] | None) -> Self:
        """The same with small pictures of its most anomalous rows; ``files`` has one a row."""
        if files is None:
            return self
        from sparker.report.rows import STRONGEST, ranked
        from sparker.report.thumbnails import thumbnails

        order = ranked(self)
        rows = range(len(files)) if order is None else order.tolist()
        shown = [row for row in rows if files[row]][:STRONGEST]
        return replace(self, pictures=tuple(thumbnails(files, shown).items()))

    def plot(self) -> "Figure":
        """Draw the decision in one figure, to show in a notebook or to save."""
        from sparker.plots import overview

        return overview(self)
