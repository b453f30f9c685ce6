"""What a test found, whole, in one frozen object that can be saved and loaded anywhere."""

import html
import os
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from sparker.calibration.pvalues import CONFIDENCE, in_sigmas, significance
from sparker.calibration.settings import option
from sparker.calibration.tail import TailFit, fit_tail
from sparker.engine import ensemble
from sparker.engine.ensemble import Ensemble
from sparker.engine.preprocess import Transform
from sparker.findings.columns import Quartiles
from sparker.findings.explain import Answers
from sparker.findings.frames import Frame, as_frame, free_name
from sparker.findings.rows import listed
from sparker.findings.saved import (
    GIVEN,
    KIND,
    TUPLES,
    answers_parts,
    embedded_again,
    given_parts,
    restore,
    same,
)
from sparker.findings.words import NOT_ALONE, finite, in_json, pulls, seen_by, sentences
from sparker.nulls import Pull
from sparker.statistics.contract import Reading, families_of
from sparker.system import archive
from sparker.system.numbers import is_number
from sparker.tables.checks import Caution
from sparker.tables.encoding import IS, Encoding, Feature
from sparker.tables.kinds import Kind
from sparker.tables.rows import INDICATOR, more_rows


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Result:
    """The outcome of ``sparker.test``.

    Widths, kernel locations and models are in the coordinates of the fit (decorrelated, as a rule):
    ``transform`` leads there and ``locations`` back. B is the number of toys, m that of widths, M
    that of kernels, K that of readings.
    """

    __test__ = False  # not a test case, whatever pytest makes of the name

    p_value: float
    interval: tuple[float, float]
    """The 95 % interval of the p-value for infinitely many toys, see ``pvalues.limits``."""
    above: int
    """Toys at least as extreme as the data."""
    n_toys: int
    """Toys the p-value rests on."""
    n_failed: int
    """Toys without any finite reading; they count as more extreme than the data."""
    widths: np.ndarray  # (m,) of the models; none where another statistic was used
    readings: tuple[Reading, ...]
    """(K,) what was read off: the way to look, and the scale."""
    statistics: np.ndarray  # (K,) before anything of the toys is subtracted
    null_statistics: np.ndarray  # (B, K)
    score_counts: np.ndarray | None
    """(1 + n, bins) data rows by anomaly score, at the width shown: those of the data, and then of
    the first hundred toys at most; None where another statistic was used."""
    p_by_reading: np.ndarray  # (K,) each on its own, not corrected for the others
    p_by_family: np.ndarray  # (F,) each way to look on its own, corrected for its scales
    combined_score: float
    """What the data's p-values combine to, see ``sparker.calibration.combine``."""
    null_combined_score: np.ndarray  # (toys compared,)
    best_reading: int
    """The reading that decided."""
    best: int
    """The width at which ``data_log_ratio`` is given: that of the reading that decided or, where no
    kernel did, that of the kernels' clearest."""
    answers: Answers | None
    """How many, where, which rows, which columns; None where nobody asked."""
    models: Ensemble | None  # of (m, ...); None where another statistic was used, as below
    transform: Transform
    data_components: np.ndarray | None  # (N_D, M) f_i of each data row, in the order given
    reference_components: np.ndarray | None  # (N_R, M)
    data_plane: np.ndarray  # (N_D, 2) the data in the plane of the reference's largest variance
    reference_plane: np.ndarray  # (N_R, 2)
    directions: np.ndarray  # (r, 2) what spans that plane, in the r coordinates of the fit
    reference_weights: np.ndarray | None
    """(N_R,) as given, times what nuisance parameters make of them; None where all are the same."""
    data: np.ndarray  # (N_D, d) the data as numbers, see ``encoding``
    reference: np.ndarray  # (n, d) reference rows as numbers, some if they are very many
    reference_rows: np.ndarray  # (n,) which of the N_R they are
    encoding: Encoding
    """How the columns became numbers, and which were left out."""
    given: dict[str, np.ndarray]
    """(N_D,) each: the columns of the data that are no plain numbers, or that name its rows."""
    data_rows: np.ndarray | None
    """(N_D,) which of the user's rows they are, where some were left out."""
    warnings: tuple[Caution, ...]
    """What looked suspicious about the samples."""
    frame: str | None
    """The library of the data frames that the samples came as, if they did."""
    preprocess: str
    """How rows became points of the fit, by name."""
    combine: str
    """The name of the rule of combination."""
    competition: str | None
    """How the kernels share a point, by name; None where there are none."""
    expected: float | None
    """Data rows expected; None where only the shape was compared."""
    n_reference: int
    """Reference rows there were."""
    n_labellings: int | None
    """In how many ways labels can be given, where all of them were tried."""
    settings: dict[str, Any]
    """All that decided the outcome, to be read by people."""
    seed: int
    versions: dict[str, str]
    timings: dict[str, float]
    """Seconds."""
    made: str
    """When, in universal time."""
    notes: tuple[str, ...]
    pictures: tuple[tuple[int, str], ...] = ()
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
        """(F,) the ways to look, by name."""
        return tuple(dict.fromkeys(families_of(self.readings)))

    @property
    def decided(self) -> Reading:
        """The reading that decided."""
        return self.readings[self.best_reading]

    def of_family(self, family: str) -> np.ndarray:
        """The numbers of the readings of a family, in the order of their scales."""
        return np.flatnonzero(np.array(families_of(self.readings)) == family)

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
    def at_least(self) -> int | None:
        """So many data rows are anomalous at least, with 95 % confidence; None if unknown."""
        bound = None if self.answers is None else self.answers.at_least
        return None if bound is None else bound.too_many

    @property
    def missing_at_least(self) -> int | None:
        """So many rows are missing from the data at least, with 95 % confidence."""
        bound = None if self.answers is None else self.answers.at_least
        return None if bound is None else bound.missing

    @property
    def ranking(self) -> np.ndarray:  # (N_D,)
        """The data rows, the most anomalous first; by f where there are no probabilities."""
        found, f = self.answers, self.data_log_ratio
        if f is not None and (found is None or np.isnan(found.probability).all()):
            return np.argsort(-f, kind="stable")
        return self._explained.ranking

    def rows(self, fdr: float | None = None) -> Frame:
        """The data rows, the most anomalous first, each with the probability that it is anomalous.

        With ``fdr`` only those of a list in which, on average, at most this share is ordinary: if
        0.2, four in five of the rows listed are anomalous or more, averaged over many samples.
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
        """Whether each data row is in the list at this false discovery rate."""
        if not is_number(fdr, above=0, below=1):
            raise ValueError(f"fdr must lie between 0 and 1, got {fdr!r}")
        p = self._explained.row_p_values
        if p is None:
            raise ValueError(
                f"no list of rows has a known false discovery rate where {NOT_ALONE}; rows() gives "
                "all of them, the most anomalous first"
            )
        return listed(p, fdr)

    def regions(self) -> Frame:
        """Where the data differ, the surest region first; ``answers.regions`` has their rows."""
        found = self._explained.regions
        low, high = ([(one.interval or (np.nan, np.nan))[i] for one in found] for i in (0, 1))
        return as_frame(
            {
                "rule": [one.rule(self.features) for one in found],
                "kind": ["missing" if one.lack else "too many" for one in found],
                "data_rows": [one.n_data for one in found],
                "expected": [one.expected for one in found],
                "too_many": [one.too_many for one in found],
                "low": low,
                "high": high,
                "p_value": [np.nan if one.p_value is None else one.p_value for one in found],
                "confirmed": [one.confirmed for one in found],
            },
            self.frame,
        )

    def columns(self) -> Frame:
        """Each column on its own, as drift tools show it; the most different first."""
        found, labels = self._explained.columns, self.tested_labels
        return as_frame(
            {
                "column": [labels[one.column] for one in found],
                "test": [one.test for one in found],
                "distance": [one.distance for one in found],
                "p_value": [one.p_value for one in found],
                "differs": [one.differs for one in found],
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
        """The surest region of too many rows that a data row is in, from 1 on; 0 for none."""
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
            families=families_of(self.readings),
        )

    def summary(self) -> str:
        """The result in a few lines of plain text."""
        low, high = self.interval
        lines = [
            f"p-value {self.p_value:.4g} (95 % interval {low:.2g} to {high:.2g}), "
            f"significance {in_sigmas(self.p_value, self.interval)}",
            f"{self.above} of {self.n_toys} anomaly-free experiments look at least as different "
            "from the reference as the data do",
        ]
        if seen := seen_by(self):
            lines.append(seen)
        if self.answers is not None:
            lines += sentences(self)
        lines += pulls(self)
        if self.n_failed:
            lines.append(
                f"{self.n_failed} toys did not stay finite and count as more extreme than the data"
            )
        lines += [f"{'new' if one.is_finding else 'warning'}: {one.text}" for one in self.warnings]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])

    def to_dict(self) -> dict[str, Any]:
        """Everything but the large arrays, as JSON knows it."""
        low, high = self.interval
        found: dict[str, Any] = {
            "p_value": self.p_value,
            "p_interval": {"low": low, "high": high, "confidence": CONFIDENCE},
            "significance": finite(self.significance),
            "significance_interval": dict(
                zip(("low", "high"), map(finite, self.significance_interval), strict=True)
            ),
            "toys": {"compared": self.n_toys, "above": self.above, "failed": self.n_failed},
            "families": [
                {
                    "family": family,
                    "p_value": float(p),
                    "readings": [self._reading(i) for i in self.of_family(family)],
                }
                for family, p in zip(self.families, self.p_by_family, strict=True)
            ],
            "decided": self.decided._asdict(),
            "nuisances": [one._asdict() for one in self.nuisances],
            "width": float(self.widths[self.best]) if len(self.widths) else None,
        }
        if self.models is not None:
            found["kernels"] = [
                {"location": location.tolist(), "amplitude": float(a)}
                for location, a in zip(self.locations, self.model.a, strict=True)
            ]
        if self.answers is not None:
            found |= in_json(self)
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

    def _reading(self, i: int) -> dict[str, Any]:
        null = self.null_statistics[:, i]
        return {
            "scale": self.readings[i].scale,
            "value": float(self.statistics[i]),
            "p_value": float(self.p_by_reading[i]),
            "null_median": _finite_quantile(null, 0.5),
            "null_95": _finite_quantile(null, 0.95),
        }

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.summary())}</pre>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one file, which ``load`` reads; no code is stored in it."""
        header: dict[str, Any] = {"kind": KIND}
        contents: dict[str, np.ndarray] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Answers):
                header[field.name], arrays = answers_parts(value)
                contents |= arrays
            elif isinstance(value, Encoding):
                header[field.name] = value.to_dict()
                contents |= value.arrays
            elif field.name == GIVEN:
                header[GIVEN], arrays = given_parts(value)
                contents |= arrays
            elif isinstance(value, TUPLES):
                contents |= {f"{field.name}.{k}": np.asarray(v) for k, v in value._asdict().items()}
            elif isinstance(value, np.ndarray):
                contents[field.name] = value
            else:
                header[field.name] = value
        archive.write(Path(path), header, contents)

    @classmethod
    def load(cls, path: str | os.PathLike[str], embed: Any = None) -> Self:
        """Read what ``save`` wrote; whatever the file holds instead, it can do no harm.

        A function that embedded texts or pictures is not in the file: give it as ``embed`` again
        to score further rows.
        """
        found = cls.restored(path, *archive.read(Path(path), KIND))
        return found if embed is None else found.embedded_by(embed)

    def embedded_by(self, embed: Any) -> Self:
        """The same with an embedder for further rows, which must be the one there was."""
        return replace(self, encoding=embedded_again(self.encoding, embed))

    @classmethod
    def restored(
        cls, path: object, header: dict[str, Any], contents: dict[str, np.ndarray]
    ) -> Self:
        """A result of what an archive held."""
        try:
            return cls(**restore((field.name for field in fields(cls)), header, contents))
        except archive.DAMAGE as error:
            raise ValueError(f"{path} is not a {KIND} of this version: {error}") from error

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Result):
            return NotImplemented
        # The same test made later is the same result.
        names = (field.name for field in fields(self) if field.name != "made")
        return all(same(getattr(self, name), getattr(other, name)) for name in names)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return (
            f"<TestResult p_value={self.p_value:.4g} significance "
            f"{in_sigmas(self.p_value, self.interval)} toys={self.n_toys}>"
        )


def _middle(quartiles: Quartiles | None) -> float:
    return np.nan if quartiles is None else quartiles[1]


def _finite_quantile(values: np.ndarray, q: float) -> float | None:
    finite = values[np.isfinite(values)]
    return float(np.quantile(finite, q)) if len(finite) else None
