"""What the tests of many samples against one reference found: a line for each, ranked."""

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sparker.calibration.false_discovery import fewest_listed, q_values
from sparker.calibration.pvalues import CONFIDENCE, significance
from sparker.findings import text
from sparker.findings.frames import Frame, as_frame
from sparker.findings.result import Result
from sparker.system.numbers import finite, span

N_NAMED = 5
"""Samples that a sentence names."""

SCHEMA = 2
"""Of ``to_dict``; within a schema keys are only ever added."""


class SampleOutcome(NamedTuple):
    """What is kept of the test of one sample: some lines, and none of its rows."""

    name: str
    n_rows: int
    p_value: float
    """NaN where it could not be tested."""
    interval: tuple[float, float]
    above: int
    """Toys at least as extreme as the sample, of ``n_toys``."""
    n_toys: int
    combined_score: float
    """It orders samples with the same p-value."""
    seed: int
    strongest: str
    """The most significant component test."""
    at_least: int | None = None
    """So many rows are anomalous at least, with 95 % confidence; None where it is unknown."""
    missing_at_least: int | None = None
    regions: tuple[str, ...] = ()
    """The significant regions, the smallest p-value first."""
    sentences: tuple[str, ...] = ()
    """The answers, as the summary of its test has them; none where none were asked for."""
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    error: str | None = None
    """Why it could not be tested."""
    smallest_p_value: float = 1.0
    """The smallest one possible with the toys asked for."""
    decision: str = ""
    """That of its test by itself, with its p-value."""

    @classmethod
    def of(cls, name: str, result: Result) -> "SampleOutcome":
        """What a card says of a result."""
        explained = result.answers is not None
        return cls(
            name,
            len(result.data),
            result.p_value,
            result.interval,
            result.above,
            result.n_toys,
            result.combined_score,
            result.seed,
            text.component_test(result),
            result.at_least,
            result.missing_at_least,
            tuple(one.rule(result.features) for one in result.significant_regions)
            if explained
            else (),
            tuple(f"{label}: {said}" for label, said in text.answers(result)) if explained else (),
            tuple(one.text for one in result.warnings),
            result.notes,
            smallest_p_value=result.smallest_p_value,
            decision=text.decision(result),
        )

    @classmethod
    def failed(cls, name: str, seed: int, error: str) -> "SampleOutcome":
        """One that could not be tested."""
        nothing = (np.nan, np.nan)
        return cls(name, 0, np.nan, nothing, 0, 0, -np.inf, seed, "", error=error)

    def without_answers(self) -> "SampleOutcome":
        """Return it without answers, which a sample has only where it is listed."""
        return self._replace(at_least=None, missing_at_least=None, regions=(), sentences=())

    @property
    def significance(self) -> float:
        """The one-sided Z of the p-value, before any correction for the other samples."""
        return significance(self.p_value)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Many:
    """The outcome of ``sparker.test_many``."""

    samples: tuple[SampleOutcome, ...]
    """In the order given."""
    fdr: float
    """The false discovery rate of the list."""
    frame: str | None
    """The library of the data frames that the samples came as, if they did."""
    n_reference: int
    settings: dict[str, Any]
    """What the tests have in common, to be read by people."""
    versions: dict[str, str]
    made: str
    """When, in universal time."""
    seconds: float
    files: tuple[str, ...] = ()
    """The file of the reference, where it came from one."""

    def __len__(self) -> int:
        return len(self.samples)

    def __iter__(self) -> Iterator[SampleOutcome]:
        return iter(self.samples)

    def __getitem__(self, name: str) -> SampleOutcome:
        for one in self.samples:
            if one.name == name:
                return one
        raise KeyError(name)

    @property
    def p_values(self) -> np.ndarray:  # (K,)
        """NaN for those that could not be tested."""
        return np.array([one.p_value for one in self.samples])

    @property
    def q_values(self) -> np.ndarray:  # (K,)
        """The smallest false discovery rate at which each would be listed."""
        return q_values(self.p_values)

    @property
    def listed(self) -> np.ndarray:  # (K,)
        """Whether each differs from the reference, at this false discovery rate."""
        return self.q_values <= self.fdr  # not where it is NaN

    @property
    def ranking(self) -> np.ndarray:  # (K,)
        """The samples, the most different first; those that could not be tested last."""
        score = [-one.combined_score for one in self.samples]
        return np.lexsort((score, np.nan_to_num(self.p_values, nan=2.0)))

    @property
    def ranked(self) -> list[SampleOutcome]:
        """The same, themselves."""
        return [self.samples[i] for i in self.ranking]

    @property
    def found(self) -> list[str]:
        """The names of those in the list, the most different first."""
        listed = self.listed
        return [self.samples[i].name for i in self.ranking if listed[i]]

    @property
    def failed(self) -> list[SampleOutcome]:
        """Those that could not be tested."""
        return [one for one in self.samples if one.error is not None]

    def table(self) -> Frame:
        """A line for each sample, the most different first."""
        order, ranked = self.ranking, self.ranked
        return as_frame(
            {
                "sample": [one.name for one in ranked],
                "rows": [one.n_rows for one in ranked],
                "p_value": self.p_values[order],
                "q_value": self.q_values[order],
                "listed": self.listed[order],
                "significance": [one.significance for one in ranked],
                "at_least": [np.nan if one.at_least is None else one.at_least for one in ranked],
                "where": [one.regions[0] if one.regions else "" for one in ranked],
                "strongest": [one.strongest for one in ranked],
                "error": [one.error or "" for one in ranked],
            },
            self.frame,
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know of the list."""
        tested = [one for one in self.samples if one.error is None]
        notes = []
        if tested:
            smallest = max(one.smallest_p_value for one in tested)
            fewest = fewest_listed(len(tested), self.fdr, smallest)
            if fewest is None or fewest > 1:
                needed = int(np.ceil(len(tested) / self.fdr)) - 1
                unless = "" if fewest is None else f" unless at least {fewest} reach it"
                notes.append(
                    f"the smallest possible p-value is {smallest:.2g}: none of {len(tested)} "
                    f"samples is listed{unless}; at least {needed:,} toys are needed to list a "
                    "single one"
                )
        suspicious = [one.name for one in self.samples if one.warnings]
        if suspicious:
            notes.append(f"there are warnings about {_named(suspicious)}")
        notes += [f"{one.name} could not be tested: {one.error}" for one in self.failed]
        return tuple(notes)

    def verdict(self) -> str:
        """The outcome in a sentence."""
        n_tested = len(self.samples) - len(self.failed)
        rate = f"{self.fdr:.3g}"
        found = self.found
        if not found:
            return (
                f"none of {n_tested} samples differs from the reference, at a false discovery rate "
                f"of {rate}"
            )
        are = "differs" if len(found) == 1 else "differ"
        return (
            f"{len(found)} of {n_tested} samples {are} from the reference, at a false discovery "
            f"rate of {rate}: {_named(found)}"
        )

    def summary(self) -> str:
        """The outcome in a few lines of plain text, one for each sample in the list."""
        lines = [self.verdict()]
        by_name = dict(zip((one.name for one in self.samples), self.q_values, strict=True))
        for name in self.found:
            one = self[name]
            where = f"; {one.regions[0]}" if one.regions else ""
            rows = f", at least {one.at_least:,} of {one.n_rows:,} rows" if one.at_least else ""
            lines.append(f"{name}: p {one.p_value:.3g}, q {by_name[name]:.3g}{rows}{where}")
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON knows it, the most different sample first."""
        q, listed = self.q_values, self.listed
        return {
            "schema": SCHEMA,
            "fdr": self.fdr,
            "found": self.found,
            "samples": [
                {
                    "sample": one.name,
                    "rank": rank,
                    "data_rows": one.n_rows,
                    "p_value": finite(one.p_value),
                    "p_interval": span(one.interval, CONFIDENCE),
                    "q_value": finite(q[i]),
                    "listed": bool(listed[i]),
                    "significance": finite(one.significance),
                    "toys": {"compared": one.n_toys, "above": one.above},
                    "strongest": one.strongest,
                    "at_least": one.at_least,
                    "missing_at_least": one.missing_at_least,
                    "regions": list(one.regions),
                    "sentences": list(one.sentences),
                    "warnings": list(one.warnings),
                    "notes": list(one.notes),
                    "seed": one.seed,
                    "error": one.error,
                }
                for rank, i in enumerate(self.ranking, 1)
                for one in [self.samples[i]]
            ],
            "reference_rows": self.n_reference,
            "files": list(self.files),
            "settings": self.settings,
            "versions": self.versions,
            "made": self.made,
            "seconds": self.seconds,
            "notes": list(self.notes),
        }

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.summary())}</pre>"

    def __repr__(self) -> str:
        return f"<ManyResult: {self.verdict()}>"


def _named(names: Sequence[str]) -> str:
    """Some names, as a sentence has them."""
    more = f" and {len(names) - N_NAMED} more" if len(names) > N_NAMED else ""
    return ", ".join(names[:N_NAMED]) + more
