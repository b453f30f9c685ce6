"""The one door: what users bring becomes samples of numbers, and what was done to them is kept.

``sparker.test``, ``Monitor``, ``SparKer`` and the command line all come in here. All that is wrong
is said at once; what looks suspicious becomes a caution, which goes wherever the answer goes.
"""

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np

from sparker.config import TestConfig
from sparker.embed import TEXT, Embedder
from sparker.engine.sample import as_weights, in_one_precision
from sparker.nulls import Nuisances, Scheme, Simulator
from sparker.nulls.agreement import disagreement
from sparker.nulls.inputs import Weights, evaluated, is_pair
from sparker.nulls.simulator import is_one
from sparker.tables.checks import Caution, cautions, values_out_of_line
from sparker.tables.columns import NAMELESS, listed
from sparker.tables.encoding import (
    EMBEDDED,
    NOTHING,
    Encoding,
    LeftOut,
    called,
    fit,
)
from sparker.tables.errors import ColumnsError, DataWarning, near, some
from sparker.tables.frames import as_table, library_of
from sparker.tables.headers import headers
from sparker.tables.identifiers import NUMBERS
from sparker.tables.kinds import Kind, as_texts, is_missing
from sparker.tables.picture_files import PICTURE
from sparker.tables.problems import NO_VALUES, judged, missing_in
from sparker.tables.rows import (
    DROP,
    ERROR,
    Encoded,
    by_name,
    changes,
    complete,
    digits_lost,
    encode,
    rows_dropped,
)
from sparker.tables.table import Table
from sparker.varied import (
    VARIED,
    mover,
    nuisances,
    varied_columns,
    varied_tables,
)

POOL = "the simulator's pool"
INDEX = "the first column"
ENOUGH = 5000
"""Rows, for the median of a column that is never missing."""


class Intake(NamedTuple):
    """Both samples, ready to be tested, and all that belongs to their rows."""

    reference: np.ndarray  # (N_R, d)
    data: np.ndarray  # (N_D, d)
    encoding: Encoding
    frame: str | None
    """The library of the data frame that the data came as, if they did."""
    given: dict[str, np.ndarray]
    """(N_D,) each: the columns of the data that are no plain numbers, or that name its rows."""
    reference_rows: np.ndarray | None
    data_rows: np.ndarray | None
    weights: Weights | None
    groups: tuple[np.ndarray, np.ndarray] | None
    strata: tuple[np.ndarray, np.ndarray] | None
    null: str | Scheme
    nuisances: Nuisances | None
    cautions: tuple[Caution, ...]
    pictures: list[str] | None = None
    """(N_D,) the files of the data's pictures, where pictures are compared."""

    @property
    def of_result(self) -> dict[str, Any]:
        """What a result keeps of it."""
        return {
            "encoding": self.encoding,
            "frame": self.frame,
            "given": self.given,
            "data_rows": self.data_rows,
            "warnings": self.cautions,
        }


def two_samples(reference: Any, data: Any, config: TestConfig) -> Intake:
    """Both samples as numbers."""
    first, second = as_table("reference", reference), as_table("data", data)
    null, weights = config.null, cast(Any, config.reference_weights)
    pool, pool_weights = None, cast(Any, None)
    if isinstance(null, Simulator):
        pool = null.source
        given = null.weights if weights is None else weights, null.pool_weights
        weights, pool_weights = (None if is_one(one) else one for one in given)
        null = replace(null, weights=None)  # from here on they are those of the test
    if callable(weights):  # of rows as they came, before anything is done to them
        both = _rows_of(reference), _rows_of(data)
        weights = evaluated(weights, *both, len(first.points), len(second.points))
    named = (config.groups, config.strata, weights, pool_weights)
    beside = [one for one in named if isinstance(one, str)]
    beside += varied_columns(config.systematics)
    if isinstance(weights, str):
        weights = _beside(first, weights, "reference")
    groups, strata = (_of_both(one, first, second) for one in (config.groups, config.strata))
    tables = {"reference": first, "data": second}
    if pool is not None and not callable(pool):
        tables[POOL] = as_table(POOL, pool)
    if isinstance(pool_weights, str):
        pool_weights = _beside(tables[POOL], pool_weights, POOL)
    elif callable(pool_weights):
        pool_weights = pool_weights(_rows_of(pool))
    tables |= varied_tables(config.systematics)
    encoding, compared, encoded, names_rows, noted = _encoded(tables, config, beside)
    points = in_one_precision({of: one.points for of, one in encoded.items()})
    by_name = dict(zip(encoded, points, strict=True))
    n_rows = {of: len(table.points) for of, table in tables.items()}
    noted += changes(encoding, compared["reference"], compared["data"])
    noted += rows_dropped(encoded, n_rows)
    compared_points = (one for of, one in by_name.items() if not of.startswith(VARIED))
    noted += _out_of_line(encoding, *compared_points)
    each_alone = groups is None and strata is None
    noted += cautions(points[0], points[1], encoding.names, within=each_alone)
    own, others = encoded["reference"], encoded["data"]
    weights = _kept_of("reference_weights", weights, encoded, n_rows)
    if isinstance(null, Simulator) and POOL in tables:
        if pool_weights is not None:
            pool_weights = as_weights("pool_weights", pool_weights, n_rows[POOL])
            pool_weights = _of_rows("pool_weights", pool_weights, encoded[POOL].rows, n_rows[POOL])
        null = replace(null, source=by_name[POOL], pool_weights=pool_weights)
        noted += _pool_apart(encoding, points[0], weights, null, int(config.seed))
    elif callable(pool):
        _check_plain(encoding)
    unknown = _nuisances(config, reference, first, encoding, encoded, by_name, weights)
    noted += [Caution("systematic", said) for said in (unknown.cautions if unknown else ())]
    return Intake(
        reference=points[0],
        data=points[1],
        encoding=encoding,
        frame=library_of(data),
        given=names_rows["data"] | others.given,
        reference_rows=own.rows,
        data_rows=others.rows,
        weights=weights,
        groups=_kept_of("groups", groups, encoded, n_rows),
        strata=_kept_of("strata", strata, encoded, n_rows),
        null=null,
        nuisances=unknown,
        cautions=told(noted, strict=config.strict, caller=4),
        pictures=others.pictures,
    )


def pools(
    given: dict[str, Any], config: TestConfig, *, drawn: bool
) -> dict[str, np.ndarray]:  # (N, d) each
    """Pools of rows as numbers, with the same columns; other rows may still be ``drawn``."""
    tables = {name: as_table(name, rows) for name, rows in given.items()}
    if not tables:
        return {}
    encoding, _, encoded, _, noted = _encoded(tables, config, [])
    if drawn:
        _check_plain(encoding)
    told(noted, strict=config.strict, caller=4)
    points = in_one_precision({name: one.points for name, one in encoded.items()})
    return dict(zip(encoded, points, strict=True))


class Alone(NamedTuple):
    """A reference whose data are still to come."""

    points: np.ndarray  # (N, d)
    weights: Any  # (N,) or None
    encoding: Encoding
    cautions: tuple[Caution, ...]


def one_sample(reference: Any, config: TestConfig) -> Alone:
    """A reference alone as numbers, and how to encode the data that are to come."""
    table = as_table("reference", reference)
    weights: Any = config.reference_weights
    beside = [weights] if isinstance(weights, str) else []
    if beside:
        weights = _beside(table, weights, "reference")
    elif callable(weights):
        rows, n = _rows_of(reference), len(table.points)
        weights, _ = evaluated(weights, rows, rows, n, n)
    encoding, _, encoded, _, noted = _encoded({"reference": table}, config, beside)
    n_rows = {"reference": len(table.points)}
    noted += rows_dropped(encoded, n_rows)
    points = encoded["reference"].points
    noted += _out_of_line(encoding, points)
    return Alone(
        points,
        _kept_of("reference_weights", weights, encoded, n_rows),
        encoding,
        told(noted, strict=config.strict, caller=3),
    )


def _out_of_line(encoding: Encoding, *points: np.ndarray) -> list[Caution]:
    """Values far from others, of the columns that are the user's own: no embedding has a slip."""
    own = [i for i, one in enumerate(encoding.features) if one.kind != EMBEDDED]
    if not own:
        return []
    names = encoding.names
    return values_out_of_line(*(part[:, own] for part in points), names=[names[i] for i in own])


def _pool_apart(
    encoding: Encoding, reference: np.ndarray, weights: Any, null: Simulator, seed: int
) -> list[Caution]:
    """Note where the pool and the reference, both weighted, have different densities."""
    if weights is not None:
        weights = weights[0] if is_pair(weights) else weights
        weights = as_weights("reference_weights", weights, len(reference))
    pool: Any = null.source
    pool_weights: Any = null.pool_weights
    found = disagreement(reference, weights, pool, pool_weights, seed)
    if found is None:
        return []
    return [
        Caution(
            "pool",
            f"{POOL} and the reference have different densities, most clearly in "
            f"{called(encoding.labels[found.column])}: p = {found.p_value:.2g} or less "
            f"(Kolmogorov-Smirnov, {found.n_pool:,} against {found.n_reference:,} rows of equal "
            "weight, corrected for the number of columns). Toys then differ from the reference "
            "for that reason, and p is too large if the data do not. Check the weights of both, "
            "and how the rows of the pool were made",
        )
    ]


def _check_plain(encoding: Encoding) -> None:
    """Refuse columns that are no numbers beside rows that a function draws."""
    if not encoding.plain:
        raise ColumnsError(
            "a simulator that is a function draws numbers, but these columns are no plain numbers: "
            f"{some(c.name for c in encoding.columns if c.kind != Kind.NUMBER or c.missing)}; "
            "encode them before, or leave them out with ignore"
        )


def _nuisances(
    config: TestConfig,
    given: Any,
    first: Table,
    encoding: Encoding,
    encoded: dict[str, Encoded],
    points: dict[str, np.ndarray],
    weights: Any,
) -> Nuisances | None:
    """What is not known exactly of the reference, in numbers."""
    if not config.systematics and config.normalisation is None:
        return None

    def column(values: Any) -> np.ndarray:
        if isinstance(values, str):
            values = _beside(first, values, "reference")
        rows = encoded["reference"].rows
        return _of_rows("weights of a systematic", values, rows, len(first.points))

    functioned = mover(
        config.systematics, given, first, encoding, config.missing, points["reference"]
    )
    return nuisances(
        config.systematics,
        config.normalisation,
        config.at or {},
        encoded,
        points,
        encoding.names,
        weights,
        column,
        functioned,
        int(config.seed),
    )


def told(found: Sequence[Caution], *, strict: bool, caller: int) -> tuple[Caution, ...]:
    """Warn of all of it, or refuse to go on; ``caller`` calls away is who should know."""
    suspicious = [one for one in found if not one.is_finding]
    if suspicious and strict:
        lines = "\n".join(f"- {one.text}" for one in suspicious)
        raise ColumnsError(f"with strict, nothing suspicious is tested:\n{lines}")
    for one in suspicious:
        warnings.warn(one.text, DataWarning, stacklevel=caller + 1)
    return tuple(found)


def _rows_of(given: Any) -> Any:
    """What a function of rows is given: what the user brought, of a file its numbers."""
    return given.points if isinstance(given, Table) else given


def _of_both(name: Any, first: Table, second: Table) -> Any:
    if not isinstance(name, str):
        return name
    return _beside(first, name, "reference"), _beside(second, name, "data")


def _beside(table: Table, column: str, of: str) -> np.ndarray:
    """A column that is no feature, by its name."""
    if column in table.extra:
        return table.extra[column]
    if column not in table.columns:
        raise ColumnsError(f"{of} has no column {column!r}{near(column, table.columns)}")
    return table.column(table.columns.index(column))


def _kept_of(name: str, given: Any, encoded: dict[str, Encoded], n_rows: dict[str, int]) -> Any:
    """What belongs to the rows that are left: of both samples, or of the reference alone."""
    if given is None or all(one.rows is None for one in encoded.values()):
        return given
    if not is_pair(given):
        return _of_rows(
            f"{name} of reference", given, encoded["reference"].rows, n_rows["reference"]
        )
    if len(given) != 2:
        return given  # which is refused where pairs are checked
    return tuple(
        _of_rows(f"{name} of {of}", part, encoded[of].rows, n_rows[of])
        for of, part in zip(("reference", "data"), given, strict=True)
    )


def _of_rows(name: str, values: Any, rows: np.ndarray | None, n_rows: int) -> np.ndarray:
    array = np.asarray(values)
    if array.shape != (n_rows,):
        raise ValueError(f"the {name} must have shape ({n_rows},), one a row, got {array.shape}")
    return array if rows is None else array[rows]


class _Ready(NamedTuple):
    """Tables that were encoded together."""

    encoding: Encoding
    compared: dict[str, Table]
    """The columns and rows that are compared, as they came."""
    encoded: dict[str, Encoded]
    names_rows: dict[str, dict[str, np.ndarray]]
    """Of the same rows, the columns that are no part of the test but may name them."""
    noted: list[Caution]


def _encoded(tables: dict[str, Table], config: TestConfig, beside: Sequence[str]) -> _Ready:
    """All tables as numbers: the same columns, encoded in one way that all their rows decide."""
    aligned, places, noted = _aligned(tables, config, beside)
    n_columns = next(iter(tables.values())).points.shape[1]
    encoding, kept, found = _fitted(aligned, places, n_columns, config)
    compared = {of: table.take(kept) for of, table in aligned.items()}
    encoded = {of: encode(encoding, one, config.missing, of) for of, one in compared.items()}
    compared = {of: table.rows(encoded[of].rows) for of, table in compared.items()}
    names_rows = {
        of: _left_out(table.rows(encoded[of].rows), kept) for of, table in aligned.items()
    }
    noted += [*found, *headers(aligned), *digits_lost(compared)]
    return _Ready(encoding, compared, encoded, names_rows, noted)


def _aligned(
    tables: dict[str, Table], config: TestConfig, beside: Sequence[str]
) -> tuple[dict[str, Table], list[int], list[Caution]]:
    """The same columns of all tables in the same order, and where these are in the reference."""
    first = next(iter(tables.values()))
    calls = list(first.columns) or [str(i) for i in range(first.points.shape[1])]
    place = {name: i for i, name in enumerate(calls)}
    ignore = {*listed(config.ignore), *beside}
    named = [*listed(config.columns), *listed(config.keep)]
    wanted = listed(config.columns) or [name for name in calls if name not in ignore]
    embedded = embedded_column(config, tables)
    if embedded is not None and embedded not in wanted:
        wanted.append(embedded)
        named.append(embedded)
    everywhere = {*calls, *(name for table in tables.values() for name in table.columns)}
    everywhere |= {NAMELESS for table in tables.values() if table.indexed}
    problems = [
        *(f"- {name}: reference has no such column{near(name, calls)}"
          for name in dict.fromkeys(named) if name not in place),
        *(f"- {name}: to be left out, but there is no such column{near(name, calls)}"
          for name in listed(config.ignore) if name not in everywhere),
        *(f"- {name}: both wanted and to be left out" for name in wanted if name in ignore),
        *(f"- {name}: named twice" for name, n in Counter(wanted).items() if n > 1),
    ]  # fmt: skip
    if problems or not wanted:
        lines = problems or ["- no column is left to be compared"]
        raise ColumnsError("columns are not as they should be:\n" + "\n".join(lines))
    places = [place[name] for name in wanted]
    found, noted = {}, []
    for name, table in tables.items():
        own = places
        if table.columns and first.columns:
            own = by_name(table, name, wanted)
            further = [one for one in table.columns if one not in place and one not in ignore]
            if further:
                noted.append(
                    Caution(
                        "further columns",
                        f"{name} has columns that the reference does not have, which were not "
                        f"compared: {some(further)}",
                    )
                )
        elif table.points.shape[1] != first.points.shape[1]:
            raise ColumnsError(
                f"{name} has {table.points.shape[1]} features, reference has "
                f"{first.points.shape[1]}; both must have the same columns"
            )
        found[name] = table.take(own)
    names = next((table.columns for table in found.values() if table.columns), ())
    return {of: one._replace(columns=names) for of, one in found.items()}, places, noted


def _fitted(
    tables: dict[str, Table], places: Sequence[int], n_columns: int, config: TestConfig
) -> tuple[Encoding, list[int], list[Caution]]:
    """How to encode each column that is kept, and which these are.

    All that is wrong with any of them is said at once.
    """
    first = next(iter(tables.values()))
    meant = {*listed(config.keep), *listed(config.columns)}
    known: list[tuple[int, str, int, Kind]] = []
    left_out = [LeftOut(name, "it was to be ignored") for name in listed(config.ignore)]
    indexes, noted = _indexes(tables, config)
    left_out += indexes
    problems = []
    finite = np.all([table.finite for table in tables.values()], axis=0)
    column, embedder = embedded_column(config, tables), config.embedder
    for i, place in enumerate(places):
        name = first.columns[i] if first.columns else f"column {place}"
        parts = {of: table.column(i) for of, table in tables.items()}
        lists = next((table.lists[i] for table in tables.values() if i in table.lists), "")
        if lists:
            problems.append(f"- {name}: holds {lists}, not one value a row; make columns of it")
            continue
        key = name if first.columns else str(place)
        is_empty = embedder is not None and all(is_missing(part).all() for part in parts.values())
        if embedder is not None and key == column and not is_empty:
            if config.missing == ERROR and (wrong := missing_in(parts)):
                problems.append(f"- {name}: {wrong}")
            known.append((i, name, place, Kind.TEXT if embedder.of == TEXT else Kind.IMAGE))
            continue
        found = judged(
            name if first.columns else "",
            parts,
            config.missing,
            own=[of for of in parts if of != POOL and not of.startswith(VARIED)],
            meant=key in meant,
            finite=bool(finite[i]),
        )
        if found.left_out:
            left_out.append(LeftOut(name, f"it {found.left_out}"))
            noted.append(_why_left_out(name, key, found.left_out))
        elif wrong := found.problem or _written_in_two_ways(tables, i):
            problems.append(f"- {name}: {wrong}")
        else:
            known.append((i, name, place, found.kind))
    if problems:
        n, them = len(problems), "them" if len(problems) > 1 else "it"
        raise ColumnsError(
            f"{n} column{'s' * (n > 1)} cannot be compared as {'they are' if n > 1 else 'it is'}:\n"
            + "\n".join(problems)
            + f"\nchange {them}, or leave {them} out with ignore (--ignore)"
        )
    if not known:
        raise ColumnsError(
            "no column is left to be compared; left out were "
            + some(f"{one.name} ({one.why})" for one in left_out)
        )
    kept = [i for i, *_ in known]
    if config.missing == DROP:  # rows that are no part of the test decide nothing
        tables = {of: table.rows(complete(of, table.take(kept))) for of, table in tables.items()}
    columns = []
    for i, name, place, kind in known:
        own = [table.column(i) for table in tables.values()]
        if embedder is not None and kind in (Kind.TEXT, Kind.IMAGE):
            columns.append(fit(name, place, kind, own, _ready(embedder, own)))
            continue
        if finite[i]:  # nothing is missing: for rows that may lack a value later, some rows tell
            own = [part[:: len(part) // ENOUGH + 1] for part in own]
        columns.append(fit(name, place, kind, own))
    encoding = Encoding(tuple(columns), tuple(left_out), bool(first.columns), n_columns)
    return encoding, kept, noted


def _why_left_out(name: str, key: str, why: str) -> Caution:
    said = f"{called(name)} was left out: it {why}"
    if why == NO_VALUES:
        return Caution("empty", said)
    return Caution("identifier", f"{said}; keep=[{key!r}] (--keep {key}) compares it all the same")


def _written_in_two_ways(tables: dict[str, Table], place: int) -> str:
    """That a column is percentages in some tables and plain numbers in others."""
    shares = [of for of, table in tables.items() if place in table.percent]
    plain = [
        of
        for of, table in tables.items()
        if shares and of not in shares and not is_missing(table.column(place)).all()
    ]
    if not plain:
        return ""
    return (
        f"percentages in {' and '.join(shares)}, and plain numbers in {' and '.join(plain)}; write "
        "all of them in one way"
    )


def _indexes(tables: dict[str, Table], config: TestConfig) -> tuple[list[LeftOut], list[Caution]]:
    """That first columns without names, which number rows, were left out."""
    found = [of for of, table in tables.items() if table.indexed]
    if not found or NAMELESS in listed(config.ignore):
        return [], []
    said = f"{INDEX} of {' and '.join(found)} was left out: it {NUMBERS}"
    remedy = "; to leave it out without this warning, ignore it: ignore=[''] (--ignore '')"
    return [LeftOut(INDEX, f"it {NUMBERS}")], [Caution("identifier", said + remedy)]


def embedded_column(config: TestConfig, tables: dict[str, Table]) -> str | None:
    """The column that is embedded, as the user named it."""
    if config.embed is None:
        return None
    column = config.images if config.text is None else config.text
    if column is None and all(table.columns == (PICTURE,) for table in tables.values()):
        return PICTURE
    if column is None:
        raise ColumnsError(
            "embed makes numbers of texts or pictures, but it is not said where they are; name "
            "their column by text or images (--text, --images)"
        )
    return column


def _ready(embedder: Embedder, parts: Sequence[np.ndarray]) -> Embedder:
    """An embedder that has learned what it has to, from the rows of all samples alike."""
    texts: list[str] = []
    if embedder.learns:
        for part in parts:
            texts += [NOTHING] * int(is_missing(part).sum()) + as_texts(part[~is_missing(part)])
    return embedder.fitted(texts)


def _left_out(table: Table, kept: Sequence[int]) -> dict[str, np.ndarray]:
    """Columns that are no part of the test, but may name its rows."""
    others = {*range(table.points.shape[1])} - {*kept, *table.lists}
    return {table.name(i): table.column(i) for i in sorted(others)} if table.columns else {}
