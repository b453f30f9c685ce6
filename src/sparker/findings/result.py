"""What a test found, whole, in one frozen object that can be saved and loaded anywhere."""

import html
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, Self, cast

import narwhals as nw
import numpy as np
from msgspec import Meta
from numpy.typing import ArrayLike
from scipy.special import expit

from sparker.calibration.combine import RULES
from sparker.calibration.pvalues import CONFIDENCE, Ranked, rank, significance
from sparker.calibration.sequential import Sequential
from sparker.calibration.settings import option
from sparker.calibration.tail import TailFit, fit_tail
from sparker.embed import Embedder, SavedEmbedder, handed_in
from sparker.embed import restored as embedder_restored
from sparker.engine import ensemble
from sparker.engine.ensemble import Ensemble
from sparker.engine.preprocess import Transform
from sparker.findings import text
from sparker.findings.bound import CONFIDENCE as BOUND_CONFIDENCE
from sparker.findings.bound import AtLeast
from sparker.findings.columns import Quartiles
from sparker.findings.decision import SIGNIFICANT, SURE, Decision, Level, decide
from sparker.findings.explain import Answers, agreeing
from sparker.findings.frames import Frame, as_frame, free_name
from sparker.findings.regions import Region
from sparker.findings.rows import listed
from sparker.nulls import Pull
from sparker.statistics.contract import Component, families_of
from sparker.system import archive
from sparker.system.archive import ArraySpec, Count, Each, Share
from sparker.system.numbers import finite, is_number, span
from sparker.tables.checks import Caution
from sparker.tables.encoding import IS, Embeds, Encoding, Feature
from sparker.tables.kinds import Kind
from sparker.tables.rows import INDICATOR, more_rows

KIND = "test result"

RESTORE: archive.Restore = {Embeds: (SavedEmbedder, embedder_restored)}

Named = str | dict[str, Any]
"""A function by its name, or an object by its settings."""

MAX_ROWS = 1e15
"""More than any sample has."""

PNG = "^data:image/png;base64,[A-Za-z0-9+/=]*$"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Result:
    """The outcome of ``sparker.test``.

    Widths, kernel locations and models are in the coordinates of the fit (decorrelated, as a rule):
    ``transform`` leads there and ``locations`` back. B is the number of toys, m that of widths, M
    that of kernels, K that of component tests.
    """

    __test__ = False  # not a test case, whatever pytest makes of the name

    p_value: Annotated[float, Meta(gt=0, le=1)]
    interval: tuple[Share, Share]
    """The 95 % interval of the p-value for infinitely many toys, see ``pvalues.limits``."""
    above: Count
    """Toys at least as extreme as the data."""
    n_toys: Count
    """Toys the p-value rests on."""
    n_toys_asked: Annotated[int, Meta(ge=1)]
    """Toys asked for, or as many as there are."""
    level: Level
    """The level of the decision."""
    n_failed: Count
    """Toys without any finite statistic; they count as more extreme than the data."""
    widths: Annotated[np.ndarray, ArraySpec("m", low=np.finfo(float).tiny)]
    """Of the models; none where another statistic was used."""
    component_tests: Annotated[tuple[Component, ...], Meta(min_length=1)]
    """(K,) the family and the scale of each component test."""
    statistics: Annotated[np.ndarray, ArraySpec("K", finite=False)]
    """(K,) before anything of the toys is subtracted."""
    null_statistics: Annotated[np.ndarray, ArraySpec("B K", finite=False)]
    score_counts: Annotated[np.ndarray, ArraySpec("n_counted bins", low=0, high=MAX_ROWS)] | None
    """(1 + n, bins) data rows by anomaly score, at the width shown: those of the data, and then of
    the first hundred toys at most; None where another statistic was used."""
    p_by_component_test: Annotated[np.ndarray, ArraySpec("K", low=np.finfo(float).tiny, high=1)]
    """Each by itself, not corrected for the others."""
    p_by_family: Annotated[np.ndarray, ArraySpec("F", low=np.finfo(float).tiny, high=1)]
    """Each family by itself, corrected for its scales."""
    combined_scores: Annotated[np.ndarray, ArraySpec("compared", finite=False)]
    """(1 + toys compared,) what the p-values of the data combine to, and then those of each toy."""
    best_component_test: Count
    """The most significant component test."""
    best: Count
    """The width at which ``data_log_ratio`` is given: that of the most significant component test
    or, where it has none, that of the kernels' most significant one."""
    answers: Answers | None
    """How many, where, which rows, which columns; None where nobody asked."""
    models: Annotated[Ensemble, Each("m")] | None
    """None where another statistic was used, as below."""
    transform: Transform
    data_components: Annotated[np.ndarray, ArraySpec("N_D M")] | None
    """f_i of each data row, in the order given."""
    reference_components: Annotated[np.ndarray, ArraySpec("N_R M")] | None
    data_plane: Annotated[np.ndarray, ArraySpec("N_D 2")]
    """The data in the plane of the reference's largest variance."""
    reference_plane: Annotated[np.ndarray, ArraySpec("N_R 2")]
    directions: Annotated[np.ndarray, ArraySpec("r 2")]
    """What spans that plane, in the r coordinates of the fit."""
    reference_weights: Annotated[np.ndarray, ArraySpec("N_R", low=0)] | None
    """As given, times what nuisance parameters make of them; None where all are the same."""
    data: Annotated[np.ndarray, ArraySpec("N_D d")]
    """The data as numbers, see ``encoding``."""
    reference: Annotated[np.ndarray, ArraySpec("n d")]
    """Reference rows as numbers, some if they are very many."""
    reference_rows: Annotated[np.ndarray, ArraySpec("n", kinds="iu", low=0)]
    """Which of the N_R they are."""
    encoding: Encoding
    """How the columns became numbers, and which were left out."""
    given: dict[str, Annotated[np.ndarray, ArraySpec("N_D", kinds="biufmMUSO", finite=False)]]
    """The columns of the data that are no plain numbers, or that name its rows."""
    data_rows: Annotated[np.ndarray, ArraySpec("N_D", kinds="iu", low=0)] | None
    """Which of the user's rows they are, where some were left out."""
    warnings: tuple[Caution, ...]
    """What looked suspicious about the samples."""
    frame: str | None
    """The library of the data frames that the samples came as, if they did."""
    preprocess: Named
    """How rows became points of the fit, by name."""
    combine: Named
    """The name of the rule of combination."""
    competition: Named | None
    """How the kernels share a point, by name; None where there are none."""
    expected: Annotated[float, Meta(gt=0)] | None
    """Data rows expected; None where only the shape was compared."""
    n_reference: Count
    """Reference rows there were."""
    n_labellings: Count | None
    """In how many ways labels can be given, where all of them were tried."""
    settings: dict[str, Any]
    """All that decided the outcome, to be read by people."""
    seed: Count
    versions: dict[str, str]
    timings: dict[str, float]
    """Seconds."""
    made: str
    """When, in universal time."""
    notes: tuple[str, ...]
    pictures: tuple[tuple[Count, Annotated[str, Meta(pattern=PNG)]], ...] = ()
    """Small pictures of the most anomalous rows, where pictures were compared: which of the data
    rows, and a PNG as a data URI."""
    nuisances: tuple[Pull, ...] = ()
    """How far the data pull each nuisance parameter of the reference."""
    files: tuple[str, ...] = ()
    """The files of reference and data, where they came from files."""

    @property
    def significance(self) -> float:
        """The one-sided Z of the p-value; minus infinity where that is 1."""
        return significance(self.p_value)

    @property
    def significance_interval(self) -> tuple[float, float]:
        """The same of the ends of the p-value's interval; infinity where no toy lies above."""
        low, high = self.interval
        return significance(high), significance(low)

    @property
    def families(self) -> tuple[str, ...]:
        """(F,) the families of component tests, by name."""
        return tuple(dict.fromkeys(families_of(self.component_tests)))

    @property
    def combined_score(self) -> float:
        """What the data's p-values combine to, see ``sparker.calibration.combine``."""
        return float(self.combined_scores[0])

    @property
    def null_combined_score(self) -> np.ndarray:  # (toys compared,)
        """The same of the toys that were compared."""
        return self.combined_scores[1:]

    @property
    def decided(self) -> Component:
        """The most significant component test."""
        return self.component_tests[self.best_component_test]

    def of_family(self, family: str) -> np.ndarray:
        """The numbers of the component tests of a family, in the order of their scales."""
        return np.flatnonzero(np.array(families_of(self.component_tests)) == family)

    @property
    def t(self) -> np.ndarray:  # (m,)
        """The first family: of kernels, the statistic of the whole model at each width."""
        return self.statistics[self.of_family(self.families[0])]

    @property
    def null_t(self) -> np.ndarray:  # (B, m)
        """The same of every toy."""
        return self.null_statistics[:, self.of_family(self.families[0])]

    @property
    def model(self) -> Ensemble:
        """The ensemble at the best width."""
        if self.models is None:
            raise ValueError("the statistic of this test fits no kernels: there is no model")
        return Ensemble(*(array[self.best] for array in self.models))

    @property
    def data_log_ratio(self) -> np.ndarray | None:  # (N_D,)
        """The log density ratio f of every data row: positive where there are too many."""
        return None if self.data_components is None else self.data_components.sum(1)

    @property
    def reference_log_ratio(self) -> np.ndarray | None:  # (N_R,)
        """The log density ratio f of every reference row that is kept."""
        return None if self.reference_components is None else self.reference_components.sum(1)

    @property
    def reference_counts(self) -> np.ndarray:  # (N_R,)
        """How many data rows each reference row stands for; together, as many as are expected."""
        given = self.reference_weights
        own = np.ones(len(self.reference_plane)) if given is None else np.asarray(given, np.float64)
        return own * ((self.expected or len(self.data_plane)) / own.sum())

    @property
    def locations(self) -> np.ndarray:  # (M, d)
        """Where the kernels of the best width sit, in the features' own units."""
        return self.transform.inverse(np.asarray(self.model.mu))

    @property
    def smallest_p_value(self) -> float:
        """The smallest p-value that is possible with the toys asked for."""
        return 1 / (self.n_toys_asked + 1)

    @property
    def decision(self) -> Decision:
        """The decision at the level: ``alpha``, ``given``, ``outcome``."""
        return decide(self.p_value, self.smallest_p_value, self.level)

    @property
    def is_significant(self) -> bool:
        """True for a significant difference."""
        return self.decision.outcome == SIGNIFICANT

    @property
    def answer_level(self) -> float:
        """The level of regions and columns: alpha, or 0.001 where the test is not significant."""
        alpha = self.level.alpha
        return alpha if self.is_significant else min(alpha, SURE)

    @property
    def significant_regions(self) -> list[Region]:
        """The regions that are significant beside the decision."""
        return [one for one in self._explained.regions if one.is_significant(self.answer_level)]

    @property
    def at_least(self) -> int | None:
        """At least so many data rows are anomalous (95 % confidence); None if unknown.

        0 where the test is not significant.
        """
        return None if self._bound is None else self._bound.too_many

    @property
    def missing_at_least(self) -> int | None:
        """At least so many rows are missing from the data (95 % confidence); None if unknown."""
        return None if self._bound is None else self._bound.missing

    @property
    def _bound(self) -> AtLeast | None:
        found = None if self.answers is None else self.answers.at_least
        if found is None or not self.is_significant:
            return None if found is None else AtLeast(0, 0)
        fewer = self.expected is not None and len(self.data) < self.expected
        return agreeing(found, self.p_value, fewer=fewer)

    @property
    def ranking(self) -> np.ndarray:  # (N_D,)
        """The data rows, the most anomalous first; by f where there are no probabilities."""
        found, f = self.answers, self.data_log_ratio
        if f is not None and (found is None or np.isnan(found.probability).all()):
            return np.argsort(-f, kind="stable")
        return self._explained.ranking

    def rows(self, fdr: float | None = None) -> Frame:
        """The data rows, the most anomalous first, each with the probability that it is anomalous.

        Args:
            fdr: Only the rows flagged at this false discovery rate: averaged over many samples, at
                most this share of them is ordinary. None are where the test is not significant.
        """
        found, order = self._explained, self.ranking
        if fdr is not None:
            order = order[self.listed(fdr)[order]]
        own = {
            "row": self.row_numbers[order],
            "probability": found.probability[order],
            "region": self.region_of_row[order],
        }
        if found.row_p_values is not None:
            own["p_value"] = found.row_p_values[order]
        values = {name: column[order] for name, column in self.values.items()}
        # The user's own columns keep their names, whatever else is said of the rows.
        return as_frame({**{free_name(k, values): v for k, v in own.items()}, **values}, self.frame)

    def listed(self, fdr: float) -> np.ndarray:  # (N_D,)
        """Whether each data row is flagged at this false discovery rate."""
        if not is_number(fdr, above=0, below=1):
            raise ValueError(f"fdr must lie between 0 and 1, got {fdr!r}")
        p = self._explained.row_p_values
        if p is None:
            raise ValueError(
                f"no rows can be flagged at a false discovery rate where {text.NOT_ALONE}; rows() "
                "gives all of them, the most anomalous first"
            )
        return listed(p, fdr) & self.is_significant

    def regions(self) -> Frame:
        """The regions in which the data differ, the smallest p-value first.

        ``answers.regions`` has their rows.
        """
        found = self._explained.regions
        low, high = ([(one.interval or (np.nan, np.nan))[i] for one in found] for i in (0, 1))
        return as_frame(
            {
                "rule": [one.rule(self.features) for one in found],
                "kind": [one.kind for one in found],
                "data_rows": [one.n_data for one in found],
                "expected": [one.expected for one in found],
                "excess": [one.too_many for one in found],
                "low": low,
                "high": high,
                "p_value": [np.nan if one.p_value is None else one.p_value for one in found],
                "significant": [one.is_significant(self.answer_level) for one in found],
            },
            self.frame,
        )

    def columns(self) -> Frame:
        """Each column by itself, as drift tools show it; the most different first."""
        found, labels = self._explained.columns, self.tested_labels
        return as_frame(
            {
                "column": [labels[one.column] for one in found],
                "test": [one.test for one in found],
                "distance": [one.distance for one in found],
                "p_value": [one.p_value for one in found],
                "significant": [one.is_significant(self.answer_level) for one in found],
                "reference_median": [_middle(one.reference_quartiles) for one in found],
                "data_median": [_middle(one.data_quartiles) for one in found],
            },
            self.frame,
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, where the samples came with any."""
        return tuple(one.name for one in self.encoding.columns) if self.encoding.named else ()

    @property
    def features(self) -> tuple[Feature, ...]:  # (d,)
        """What each number of a row is, and how conditions on it read."""
        return self.encoding.told_apart

    @property
    def column_labels(self) -> list[str]:  # (d,)
        """What the numbers of a row are called."""
        return self.encoding.labels

    @property
    def tested_labels(self) -> list[str]:  # (d,)
        """The same where columns are tested one by one: of a category, the name of the column."""
        found, features = self.column_labels, self.features
        for first, *_ in self.encoding.blocks:
            if features[first].kind == IS:
                found[first] = features[first].column
        return found

    @property
    def row_numbers(self) -> np.ndarray:  # (N_D,)
        """Which of the user's rows the data rows are, counted from 0."""
        return np.arange(len(self.data)) if self.data_rows is None else self.data_rows

    @property
    def used_columns(self) -> list[str]:
        """The names of the columns that were compared and vary."""
        features, kept = self.encoding.features, self.transform.kept
        return list(dict.fromkeys(features[i].column for i in kept.tolist()))

    @property
    def values(self) -> dict[str, np.ndarray]:
        """(N_D,) each: the user's columns, as they came."""
        named = {one.name for one in self.encoding.columns}
        found = {name: column for name, column in self.given.items() if name not in named}
        place = 0
        for one in self.encoding.columns:
            found[one.name] = self.given.get(one.name, self.data[:, place])
            place += len(one.features)
        return found

    @property
    def texts(self) -> list[str] | None:  # (N_D,)
        """The text of each data row, where texts were compared."""
        own = self.encoding.embedded
        if own is None or own.kind != Kind.TEXT:
            return None
        return ["" if text is None else str(text) for text in self.given[own.name]]

    @property
    def region_of_row(self) -> np.ndarray:  # (N_D,)
        """The most significant region with an excess that a data row is in, from 1; 0 for none."""
        found = np.zeros(len(self.data), int)
        for number, region in reversed(list(enumerate(self._explained.regions, 1))):
            if not region.lack:
                found[list(region.rows)] = number
        return found

    @property
    def _explained(self) -> Answers:
        if self.answers is None:
            raise ValueError("this test was made without answers; test again with explain=True")
        return self.answers

    def components(self, rows: ArrayLike) -> np.ndarray:  # (N, d) -> (N, M)
        """The kernels' components f_i at new rows, preprocessed as the samples were."""
        model = self.model
        encoded, _ = more_rows("rows", rows, self.encoding, INDICATOR)
        try:
            competition = option("competition", str(self.competition))
        except ValueError as error:
            raise ValueError(
                "new rows cannot be scored: the kernels competed in a way that is not sparker's own"
            ) from error
        points = encoded.points.astype(self.data.dtype, copy=False)
        return ensemble.components(model, self.transform(points), competition)

    def log_ratio(self, rows: ArrayLike) -> np.ndarray:  # (N, d) -> (N,)
        """The log density ratio f at new rows."""
        return self.components(rows).sum(1)

    def anomaly_score(self, rows: ArrayLike) -> np.ndarray:  # (N, d) -> (N,)
        """``c = Sigmoid(f)`` at new rows: above 1/2 where there are more data than expected."""
        return expit(self.log_ratio(rows))

    def tail_fit(self) -> TailFit:
        """An estimate beyond the reach of the toys, extrapolated; refused where the fit is bad."""
        return fit_tail(
            self.statistics,
            self.null_statistics,
            str(self.combine),
            families=families_of(self.component_tests),
        )

    def summary(self, *, warnings: bool = True) -> str:
        """Return what was compared, the decision and the answers, in a few lines.

        Args:
            warnings: Include the warnings that could change the decision.
        """
        return text.summary(self, warnings=warnings)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the large arrays, as JSON knows it."""
        found: dict[str, Any] = {
            "p_value": self.p_value,
            "p_interval": span(self.interval, CONFIDENCE),
            "significance": finite(self.significance),
            "significance_interval": dict(
                zip(("low", "high"), map(finite, self.significance_interval), strict=True)
            ),
            "decision": self.decision._asdict(),
            "toys": {"compared": self.n_toys, "above": self.above, "failed": self.n_failed},
            "families": [
                {
                    "family": family,
                    "p_value": float(p),
                    "component_tests": [self._component_test(i) for i in self.of_family(family)],
                }
                for family, p in zip(self.families, self.p_by_family, strict=True)
            ],
            "most_significant": self.decided._asdict(),
            "nuisances": [one._asdict() for one in self.nuisances],
            "width": float(self.widths[self.best]) if len(self.widths) else None,
        }
        if self.models is not None:
            found["kernels"] = [
                {"location": location.tolist(), "amplitude": float(a)}
                for location, a in zip(self.locations, self.model.a, strict=True)
            ]
        if self.answers is not None:
            found |= self._answers_in_json(self.answers)
        return found | {
            "files": list(self.files),
            "made": self.made,
            "data_rows": len(self.data),
            "reference_rows": self.n_reference,
            "columns": list(self.names),
            "dropped_columns": self.transform.dropped.tolist(),
            "encoding": self.encoding.to_dict(),
            "warnings": [one._asdict() for one in self.warnings],
            "settings": self.settings,
            "seed": self.seed,
            "versions": self.versions,
            "timings": self.timings,
            "notes": list(self.notes),
        }

    def _answers_in_json(self, found: Answers) -> dict[str, Any]:
        """The answers; the rows are those flagged, and the ten first."""
        labels, numbers, bound, fdr = self.tested_labels, self.row_numbers, self._bound, text.FDR
        flagged = np.zeros(len(self.data), bool)
        if found.row_p_values is not None:
            flagged = self.listed(fdr)
        return {
            "how_many": None
            if bound is None
            else {
                "at_least": bound.too_many,
                "missing_at_least": bound.missing,
                "confidence": BOUND_CONFIDENCE,
            },
            "regions": [
                one.to_dict(self.features, numbers, self.answer_level) for one in found.regions
            ],
            "rows": {
                "fdr": None if found.row_p_values is None else fdr,
                "flagged": [int(numbers[row]) for row in self.ranking if flagged[row]],
                "most_anomalous": [
                    {"row": int(numbers[row]), "probability": finite(float(found.probability[row]))}
                    for row in self.ranking[:10]
                ],
            },
            "columns_alone": [
                {
                    "column": labels[one.column],
                    "test": one.test,
                    "distance": one.distance,
                    "p_value": one.p_value,
                    "significant": one.is_significant(self.answer_level),
                    "reference_quartiles": _listed(one.reference_quartiles),
                    "data_quartiles": _listed(one.data_quartiles),
                }
                for one in found.columns
            ],
        }

    def _component_test(self, i: int) -> dict[str, Any]:
        null = self.null_statistics[:, i]
        return {
            "scale": self.component_tests[i].scale,
            "value": float(self.statistics[i]),
            "p_value": float(self.p_by_component_test[i]),
            "null_median": _finite_quantile(null, 0.5),
            "null_95": _finite_quantile(null, 0.95),
        }

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.summary())}</pre>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one file, which ``load`` reads; no code is stored in it.

        Args:
            path: where; files are usually called ``*.sparker``.
        """
        archive.write(path, KIND, self.saved())

    def saved(self) -> Self:
        """Return what its file has."""
        return replace(self, encoding=self.encoding.saved())

    @classmethod
    def load(cls, path: str | os.PathLike[str], embed: Any = None) -> Self:
        """Read what ``save`` wrote; whatever the file holds instead, it can do no harm.

        Args:
            path: the file.
            embed: the function that embedded texts or pictures, which is not in the file, to score
                further rows.

        Raises:
            ValueError: if the file holds anything else.
        """
        with archive.reading(path, KIND):
            found = archive.unpacked(archive.content_of(path), {KIND: cls}, RESTORE)
            return cls.restored(found, embed)

    @classmethod
    def restored(cls, found: Self, embed: Any = None) -> Self:
        """Return what was in a file, once its parts fit together, with an embedder if there is one.

        Raises:
            ValueError: if they do not, or the embedder is another one.
        """
        if problems := [*_problems(found)]:
            raise ValueError("; ".join(problems))
        if embed is None:
            return found
        own = found.encoding.embedded
        if own is None:
            raise ValueError("embed was given, but no column was embedded")
        ready = own._replace(embedder=handed_in(embed, cast(Embedder, own.embedder)))
        columns = [ready if one is own else one for one in found.encoding.columns]
        return replace(found, encoding=found.encoding._replace(columns=tuple(columns)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Result):
            return NotImplemented
        # The same test made later is the same result.
        one, two = (archive.packed(KIND, replace(each.saved(), made="")) for each in (self, other))
        return one == two

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<TestResult: {text.decision(self)}>"


def _listed(values: Quartiles | None) -> list[float] | None:
    return None if values is None else list(values)


def _middle(quartiles: Quartiles | None) -> float:
    return np.nan if quartiles is None else quartiles[1]


def _finite_quantile(values: np.ndarray, q: float) -> float | None:
    finite = values[np.isfinite(values)]
    return float(np.quantile(finite, q)) if len(finite) else None


def _problems(found: Result) -> Iterator[str]:
    """Yield what does not fit together in a result from a file, beyond what its types declare."""
    n_data, n_columns = found.data.shape
    n_shown, n_readings = len(found.reference_plane), len(found.component_tests)
    transform, models, answers = found.transform, found.models, found.answers
    n_scores = len(found.combined_scores)
    if 0 in (n_data, n_shown, len(found.null_statistics), len(found.reference), n_scores):
        yield "it has no rows or no toys"
        return
    n_families = len(found.families), len(found.p_by_family)
    if n_readings != len(found.p_by_component_test) or n_families[0] != n_families[1]:
        yield "its component tests are others"
        return
    found.encoding.check()
    if len(found.encoding.features) != n_columns:
        yield "its encoding is of other columns"
    if len(found.directions) != transform.matrix.shape[-1]:
        yield "its directions are those of another fit"
    if transform.back.shape != transform.matrix.shape[::-1]:
        yield "its transform has no way back"
    of_kernels = models, found.data_components, found.reference_components
    if any((part is None) != (not len(found.widths)) for part in of_kernels):
        yield "it has widths without models, or models without widths"
    if models is not None and models.mu.shape[-1] != len(found.directions):
        yield "its models are those of another fit"
    if found.best >= max(len(found.widths), 1) or found.best_component_test >= n_readings:
        yield f"best is {found.best}, best_component_test {found.best_component_test}"
    if found.n_toys > found.n_toys_asked:
        yield f"it has {found.n_toys} toys of {found.n_toys_asked}"
    if found.interval[0] > found.interval[1]:
        yield f"the interval of its p-value is {found.interval[0]} to {found.interval[1]}"
    if not np.isfinite(found.statistics).any():
        yield "none of its statistics is finite"
    for name, rows, end in (
        ("reference_rows", found.reference_rows, n_shown),
        ("data_rows", found.data_rows, 2**62),
        ("kept", transform.kept, n_columns),
    ):
        if rows is not None and not (np.all(rows[1:] > rows[:-1]) and np.all(rows < end)):
            yield f"{name} are not the numbers of rows or columns"
    if found.score_counts is not None and not found.score_counts.size:
        yield "its score_counts are not those of the data"
    if found.n_reference < n_shown:
        yield f"n_reference is {found.n_reference}, and {n_shown} rows are shown"
    if found.reference_weights is not None and not found.reference_weights.any():
        yield "its reference_weights are all zero"
    if (own := found.encoding.embedded) is not None and own.name not in found.given:
        yield f"it lacks the column {own.name}, which was embedded"
    if found.frame not in {None, *(one.name.lower() for one in nw.Implementation)}:
        yield f"frame is {found.frame!r:.40}, which is no library of data frames"
    if "sparker" not in found.versions:
        yield "it does not say which version made it"
    rows_named = [row for row, _ in found.pictures]
    if answers is not None:
        conditions = [one for region in answers.regions for one in region.conditions]
        rows_named += [row for region in answers.regions for row in region.rows]
        columns_named = [one.column for one in conditions]
        columns_named += [one.column for one in answers.columns]
        if max(columns_named, default=0) >= n_columns:
            yield "an answer is about a column that is not there"
        if any(one.above is None and one.at_most is None for one in conditions):
            yield "a region has a condition without bounds"
    if max(rows_named, default=0) >= n_data:
        yield "a region or a picture has rows that are not there"
    yield from _verdict(found)


def _verdict(found: Result) -> Iterator[str]:
    """Yield what is not as the toys beside it have it, where that can be computed again."""
    null = found.null_statistics
    n_failed = int(np.sum(~np.isfinite(null).any(axis=1)))
    if found.n_failed != n_failed:
        yield f"n_failed is {found.n_failed}, and {n_failed} toys have no finite statistic"
    ranked = _ranked(found)
    if ranked is None:
        n = len(found.null_combined_score)
        above = int(np.sum(found.null_combined_score >= found.combined_score))
        possible = (above + 1) / (n + 1), above / max(n, 1)
        if (found.above, found.n_toys) != (above, n) or found.p_value not in possible:
            yield f"its p-value is {found.p_value}, and its scores give {possible[0]:.6g}"
        return
    for name, given, right in (
        ("p_value", found.p_value, ranked.p_value),
        ("above", found.above, ranked.above),
        ("n_toys", found.n_toys, ranked.n_toys),
        ("p_by_component_test", found.p_by_component_test, ranked.p_by_column),
        ("p_by_family", found.p_by_family, ranked.p_by_family),
        ("combined_scores", found.combined_scores, ranked.score),
    ):
        if np.shape(given) != np.shape(right) or not np.allclose(given, right, rtol=1e-6, atol=0):
            shown = "" if np.ndim(given) else f" is {given:.6g}, and its toys give {right:.6g}"
            yield f"{name}{shown or ' is not what its toys give'}"


def _ranked(found: Result) -> Ranked | None:
    """Return the table ranked once more; None where that takes a rule of the user's own."""
    rule = next((rule for rule in RULES if rule.__name__ == found.combine), None)
    if rule is None:
        return None
    table = np.concatenate([found.statistics[None], found.null_statistics])
    families, stop = families_of(found.component_tests), found.settings["stop"]
    if stop is None:
        return rank(table, rule, families)
    sequential = Sequential(exceedances=int(stop["exceedances"]), first=int(stop["first"]))
    return sequential.rank(table, rule, complete=True, families=families)
