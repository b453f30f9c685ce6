"""ROOT: the branches of a tree."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from sparker.tables.errors import FileError, need, some
from sparker.tables.format import Format
from sparker.tables.source import Piece, Source, block_rows

ONE_VALUE = r"u?int\d+_t|float|double|bool|char|Float16_t|Double32_t|string|char\*|TString"
"""What ROOT calls one value; anything else is a list or an object."""


@contextmanager
def open_root(path: Path, key: str | None) -> Iterator[Source]:
    """A tree, whose branches are read block by block."""
    uproot = need("uproot", "root")
    with uproot.open(path) as file:
        if file.file.fEND > path.stat().st_size:
            raise FileError(f"is cut short: it should be {file.file.fEND} bytes; copy it again")
        tree = file[_tree(file.classnames(cycle=False), key)]
        kinds = {name: kind.removeprefix("std::") for name, kind in tree.typenames().items()}
        names = tuple(  # of a branch that is split only the ends
            name for name in kinds if not any(other.startswith(f"{name}/") for other in kinds)
        )

        def pieces(wanted: tuple[str, ...], only_numbers: bool) -> Iterator[Piece]:
            step = block_rows(len(wanted))
            for start in range(0, tree.num_entries, step):
                for name in wanted:
                    part = {"entry_start": start, "entry_stop": start + step}
                    yield name, start, tree[name].array(library="np", **part)

        yield Source(
            names,
            pieces,
            n_rows=tree.num_entries,
            lists={name for name in names if not re.fullmatch(ONE_VALUE, kinds[name])},
            single={name for name in names if kinds[name] == "float"},
        )


def _tree(classes: Mapping[str, str], key: str | None) -> str:
    trees = [name for name, kind in classes.items() if re.search("T(Ntuple|Tree)|RNTuple", kind)]
    if key is not None:
        key = key.strip("/").partition(";")[0]
        if key not in trees:
            raise FileError(f"holds no tree {key!r}; it holds {some(trees) or 'none'}")
        return key
    if not trees:
        raise FileError("holds no tree")
    if len(trees) > 1:
        raise FileError(f"holds several trees; name one of them as the key: {some(trees)}")
    return trees[0]


FORMATS = {
    ".root": Format(
        "ROOT", open_root, has_keys=True, apart=True, start=b"root\x00", looks_like="ROOT"
    )
}
