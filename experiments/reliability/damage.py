"""Files damaged at random: bytes and parts that are flipped, cut, spliced, doubled or swapped."""

import io
import struct
import warnings
import zipfile

import numpy as np

Rng = np.random.Generator


def mutated(whole: bytes, rng: Rng) -> bytes:
    """A file with a few bytes flipped, replaced, copied elsewhere or grown, or cut short."""
    found = bytearray(whole)
    kind = rng.integers(5)
    for _ in range(rng.integers(1, 4)):
        i, j = (int(place) for place in rng.integers(len(found), size=2))
        if kind == 0:
            found[i] = int(rng.integers(256))
        elif kind == 1:
            del found[max(i, 1) :]
        elif kind == 2:
            n = int(rng.integers(1, 64))
            found[i : i + n] = found[j : j + n]
        elif kind == 3:
            length = int(rng.choice([0, 10**6, 2**31 - 1, 2**32 - 1]))
            found[i : i + 4] = length.to_bytes(4, "little")
        else:
            found[i] ^= 1 << int(rng.integers(8))
    return bytes(found)


def flip(rng: Rng, whole: bytes, other: bytes) -> bytes:
    """A few bits, anywhere."""
    found = bytearray(whole)
    for place in rng.integers(len(found), size=rng.integers(1, 9)):
        found[place] ^= 1 << rng.integers(8)
    return bytes(found)


def flip_what_counts(rng: Rng, whole: bytes, other: bytes) -> bytes:
    """Where a zip says how long, how large and how packed its parts are."""
    marks = [whole.find(mark) for mark in (b"PK\x01\x02", b"PK\x05\x06", b"PK\x03\x04")]
    start = int(rng.choice([mark for mark in marks if mark >= 0] or [0]))
    found = bytearray(whole)
    found[min(start + int(rng.integers(4, 30)), len(found) - 1)] = rng.integers(256)
    return bytes(found)


def cut(rng: Rng, whole: bytes, other: bytes) -> bytes:
    """The end is missing."""
    return whole[: rng.integers(len(whole))]


def cut_out(rng: Rng, whole: bytes, other: bytes) -> bytes:
    """Something in the middle is missing."""
    start, end = np.sort(rng.integers(len(whole), size=2))
    return whole[:start] + whole[end:]


def splice(rng: Rng, whole: bytes, other: bytes) -> bytes:
    """The beginning of this one and the end of another."""
    return whole[: rng.integers(len(whole))] + other[rng.integers(len(other)) :]


def repeat(rng: Rng, whole: bytes, other: bytes) -> bytes:
    """Something twice."""
    start, end = np.sort(rng.integers(len(whole), size=2))
    return whole[:end] + whole[start:end] + whole[end:]


def overwrite(rng: Rng, whole: bytes, other: bytes) -> bytes:
    """Noise in the middle."""
    start, n = rng.integers(len(whole)), rng.integers(1, 400)
    return whole[:start] + rng.bytes(n) + whole[start + n :]


def large_number(rng: Rng, whole: bytes, other: bytes) -> bytes:
    """A length, if one is there, of anything."""
    place = int(rng.integers(len(whole) - 8))
    return (
        whole[:place] + struct.pack("<q", int(rng.choice([-1, 2**31, 2**62]))) + whole[place + 8 :]
    )


def members_of(whole: bytes) -> list[tuple[str, bytes]]:
    """The parts of an archive, by name."""
    with zipfile.ZipFile(io.BytesIO(whole)) as file:
        return [(info.filename, file.read(info)) for info in file.infolist()]


def zipped(members: list[tuple[str, bytes]], compression: int = zipfile.ZIP_STORED) -> bytes:
    """An archive of these parts."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as file:
        for name, content in members:
            file.writestr(zipfile.ZipInfo(name), content)
    return out.getvalue()


def twice(rng: Rng, whole: bytes, other: bytes) -> bytes:
    """A part once more, with the contents of another: who reads which?"""
    members = members_of(whole)
    one, another = (members[i] for i in rng.choice(len(members), 2, replace=False))
    with warnings.catch_warnings(action="ignore"):  # of the name that is there twice
        return zipped([*members, (one[0], another[1])])


def swap(rng: Rng, whole: bytes, other: bytes) -> bytes:
    """Two parts with each other's contents."""
    members = members_of(whole)
    i, j = rng.choice(len(members), 2, replace=False)
    (one, first), (another, second) = members[i], members[j]
    members[i], members[j] = (one, second), (another, first)
    return zipped(members)


def leave_out(rng: Rng, whole: bytes, other: bytes) -> bytes:
    """Without one of its parts."""
    members = members_of(whole)
    del members[rng.integers(len(members))]
    return zipped(members)


def rename(rng: Rng, whole: bytes, other: bytes) -> bytes:
    """A part with the name of something else."""
    members = members_of(whole)
    i = rng.integers(len(members))
    members[i] = (rng.choice(["../../x.npy", "/etc/x.npy", "x", ""]), members[i][1])
    return zipped(members)


def foreign(rng: Rng, whole: bytes, other: bytes) -> bytes:
    """A part of another file in place of one's own."""
    members, others = members_of(whole), members_of(other)
    i = rng.integers(len(members))
    members[i] = (members[i][0], others[rng.integers(len(others))][1])
    return zipped(members)


def compress(rng: Rng, whole: bytes, other: bytes) -> bytes:
    """The same parts, compressed."""
    return zipped(members_of(whole), zipfile.ZIP_DEFLATED)


BYTES = flip, flip_what_counts, cut, cut_out, splice, repeat, overwrite, large_number
MEMBERS = twice, swap, leave_out, rename, foreign, compress
