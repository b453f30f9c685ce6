"""What the file of a monitor has: the reference as it was given, settings, looks and history."""

from typing import Annotated, Any

import msgspec
import numpy as np

from sparker.calibration.sequential import Sequential
from sparker.calibration.settings import from_names, option, option_name, to_names
from sparker.calibration.store import MAX_CHUNK
from sparker.config import TestConfig
from sparker.embed import NAMES, Remembered, SavedEmbedder, handed_in, restored
from sparker.engine.config import FitConfig
from sparker.engine.widths import MAX_STEPS, WidthConfig
from sparker.history import LookRecord
from sparker.nulls import Permutation
from sparker.statistics.choose import named
from sparker.system.archive import ArraySpec
from sparker.tables.table import Table

MAX_CANDIDATES = 2**20
"""Points that a scan looks at; 512 are usual."""

Names = tuple[str, ...]


class SavedSettings(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The settings of the tests: those of ``sparker.TestConfig`` that are plain values."""

    n_toys: int
    seed: int
    columns: Names | None
    ignore: Names
    keep: Names
    missing: str
    text: str | None
    images: str | None
    strict: bool
    reference_weights: str | None
    expected: float | None
    groups: str | None
    strata: str | None
    stop: Sequential | None
    chunk: Annotated[int, msgspec.Meta(ge=1, le=MAX_CHUNK)] | None


class SavedOptions(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The settings that are functions or objects, by their names."""

    preprocess: str
    combine: str
    statistic: str | None
    group_rows: int | None
    config: dict[str, Any] | None
    widths: dict[str, Any] | None


class SavedVectors(msgspec.Struct, forbid_unknown_fields=True):
    """An embedder that learned nothing, and the vectors of the reference."""

    own: SavedEmbedder
    vectors: Annotated[np.ndarray, ArraySpec("texts width")]


class SavedMonitor(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """All of a monitor."""

    reference: Table
    alpha: Annotated[float, msgspec.Meta(gt=0, lt=1)]
    looks: Annotated[int, msgspec.Meta(ge=1)] | None
    history: tuple[LookRecord, ...]
    settings: SavedSettings
    options: SavedOptions
    embed: str | SavedVectors | None

    @classmethod
    def of(cls, config: TestConfig, **others: Any) -> "SavedMonitor":
        """Return what the file of a monitor has.

        Args:
            config: the settings of its tests.
            **others: the fields that are plain values.

        Raises:
            ValueError: if a setting is a function of the user's, which no file can hold.
        """
        plain = {name: getattr(config, name) for name in SavedSettings.__struct_fields__}
        return cls(
            **others,
            settings=SavedSettings(**plain),
            options=SavedOptions(
                preprocess=option_name("preprocess", config.preprocess),
                combine=option_name("combine", config.combine),
                statistic=_statistic_name(config),
                group_rows=config.scheme.group_rows,
                config=None if config.config is None else to_names(config.config),
                widths=None if config.widths is None else to_names(config.widths),
            ),
            embed=_saved_embedder(config.embed),
        )

    def keywords(self, embed: Any = None) -> dict[str, Any]:
        """Return the settings as ``sparker.TestConfig`` takes them.

        Args:
            embed: the function that embeds texts or pictures, which no file can hold.

        Raises:
            ValueError: if a setting is out of range.
        """
        given = self.options
        found = {
            "preprocess": option("preprocess", given.preprocess),
            "combine": option("combine", given.combine),
            "embed": _restored_embedder(self.embed, embed),
        }
        if given.group_rows is not None:
            found["null"] = Permutation(group_rows=given.group_rows)
        if given.statistic is not None:
            found["statistic"] = named()[given.statistic]()
        if given.config is not None:
            found["config"] = config = FitConfig(**from_names(given.config))
            _check("n_candidates", config.n_candidates, MAX_CANDIDATES)
        if given.widths is not None:
            found["widths"] = widths = WidthConfig(**from_names(given.widths))
            _check("steps", widths.steps, MAX_STEPS)
        return {**msgspec.structs.asdict(self.settings), **found}


def _statistic_name(config: TestConfig) -> str | None:
    if config.statistic is None:
        return None
    for name, kind in named().items():
        if config.statistic == kind():
            return name
    raise ValueError(
        f"statistic is {config.statistic!r}; only sparker's own statistics with their default "
        "settings can be saved"
    )


def _saved_embedder(embed: Any) -> str | SavedVectors | None:
    if isinstance(embed, Remembered):
        return SavedVectors(embed.saved(), embed.vectors)
    if embed is None or (isinstance(embed, str) and embed in NAMES):
        return embed
    raise ValueError(
        f"embed is {embed!r:.80}, which learns and is not sparker's: it cannot be saved"
    )


def _restored_embedder(saved: str | SavedVectors | None, embed: Any) -> Any:
    if not isinstance(saved, SavedVectors):
        if embed is not None:
            raise ValueError("embed was given, but the file says all of its embedder, or has none")
        return saved
    own = restored(saved.own)
    if embed is not None:
        own = handed_in(embed, own)
    if saved.vectors.shape[1] != own.width:
        raise ValueError(f"its vectors have {saved.vectors.shape[1]} numbers, not {own.width}")
    return Remembered(own=own, vectors=saved.vectors)


def _check(name: str, value: int, most: int) -> None:
    if not isinstance(value, int) or not 1 <= value <= most:
        raise ValueError(f"{name} is {value!r:.40}, not a whole number from 1 to {most}")
