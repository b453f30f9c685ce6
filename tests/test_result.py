"""Results: saved whole, loaded safely, and in the user's own units."""

import dataclasses
import functools
import io
import json
import os
import pickle
import time
import tracemalloc

import msgspec
import numpy as np
import pandas as pd
import pytest
from experiments.columns import swapped
from safetensors import numpy as safetensors
from sealed import value_of, with_tensors, with_text, with_values

import sparker
from sparker.calibration.settings import plain
from sparker.engine.preprocess import left_correlated
from sparker.findings import text
from sparker.findings.result import KIND
from sparker.system import archive
from sparker.tables.encoding import Encoding

N_REFERENCE, N_DATA = 200, 50
QUICK = {
    "n_toys": 11,
    "chunk": 4,
    "config": sparker.FitConfig(n_kernels=3),
    "widths": sparker.WidthConfig(steps=20, n_widths=3),
}
CLUSTER = [3.0, 3.0]


def make_samples(seed=0):
    rng = np.random.default_rng(seed)
    reference, data = rng.normal(size=(N_REFERENCE, 2)), rng.normal(size=(N_DATA, 2))
    data[:12] = CLUSTER + 0.1 * rng.normal(size=(12, 2))
    return reference, data


def draw_rows(rng, n):
    return rng.normal(size=(n, 2))


def weigh(rows):
    return np.exp(0.3 * rows[:, 0])


def mean_shift(rng, sample):
    means = [weight @ sample.points / weight.sum() for weight in sample[1:]]
    return np.abs(means[1] - means[0])


def lowest_of_all(rng, sample):
    """A statistic by which the data look less anomalous than any toy."""
    return -sample.data_weight @ np.all(np.abs(sample.points) > 1.5, axis=1)


KINDS = {
    "permutation": {},
    "strata": {"strata": (np.arange(N_REFERENCE) % 4, np.arange(N_DATA) % 3)},
    "weights": {"reference_weights": weigh},
    "simulator": {"null": sparker.Simulator(draw_rows)},
    "pool": {"null": sparker.Simulator(np.random.default_rng(9).normal(size=(300, 2)))},
    "function": {"statistic": mean_shift, "config": None, "widths": None},
    "stopped": {"stop": sparker.Sequential(exceedances=3, first=10), "n_toys": 39},
    "expected": {"expected": 48.0, "reference_weights": np.tile([1.0, 2.0], 100)},
    "options": {
        "config": sparker.FitConfig(
            n_kernels=3,
            competition=sparker.engine.independent,
            loss=sparker.engine.binary_cross_entropy,
        ),
        "preprocess": sparker.whiten,
        "combine": sparker.cauchy,
    },
}


@functools.cache
def result_of(kind="permutation"):
    return sparker.test(*make_samples(), **(QUICK | KINDS[kind]))


def saved(result, folder):
    path = folder / "result.sparker"
    result.save(path)
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_a_loaded_result_is_the_one_that_was_saved(kind, tmp_path):
    result = result_of(kind)
    loaded = sparker.TestResult.load(saved(result, tmp_path))
    assert loaded == result
    assert loaded.summary() == result.summary()
    assert loaded.to_dict() == result.to_dict()
    assert os.listdir(tmp_path) == ["result.sparker"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_weights_of_the_reference_are_kept_as_given(dtype, tmp_path):
    weights = np.tile([1.0, 2.5], N_REFERENCE // 2).astype(dtype)
    result = sparker.test(*make_samples(), **QUICK, reference_weights=weights)
    loaded = sparker.TestResult.load(saved(result, tmp_path)).reference_weights
    np.testing.assert_array_equal(loaded, weights)
    assert loaded.dtype == dtype
    np.testing.assert_allclose(result.reference_counts, weights * N_DATA / weights.sum())


def test_a_reference_of_equal_weights_is_unweighted():
    result = sparker.test(*make_samples(), **QUICK, reference_weights=np.full(N_REFERENCE, 3.0))
    assert result.reference_weights is None
    np.testing.assert_array_equal(result.t, result_of().t)
    np.testing.assert_allclose(result.reference_counts, N_DATA / N_REFERENCE)


def test_reference_rows_stand_for_the_expected_number_of_data_rows():
    assert result_of("expected").reference_counts.sum() == pytest.approx(48)
    ratio = result_of("expected").reference_counts[1] / result_of("expected").reference_counts[0]
    assert ratio == pytest.approx(2)


def test_names_of_columns_are_kept(tmp_path):
    reference, data = (pd.DataFrame(x, columns=["mass", "angle"]) for x in make_samples())
    result = sparker.test(reference, data, **QUICK)
    assert result.names == ("mass", "angle")
    assert sparker.TestResult.load(saved(result, tmp_path)).names == ("mass", "angle")
    assert result.to_dict()["columns"] == ["mass", "angle"]
    only_data = sparker.test(reference.to_numpy(), data, **QUICK)
    assert only_data.names == ("mass", "angle")
    np.testing.assert_array_equal(only_data.t, result_of().t)


def changed(value):
    if isinstance(value, Encoding):
        return value._replace(named=not value.named)
    if hasattr(value, "_fields"):
        return value._replace(**{value._fields[0]: changed(np.asarray(value[0]))})
    if isinstance(value, np.ndarray):
        other = value.copy()
        other.flat[-1] += 1
        return other
    if isinstance(value, tuple):
        return (*value, "more")
    if isinstance(value, dict):
        return value | {"more": 1}
    if isinstance(value, str):
        return value + "more"
    return np.ones(1) if value is None else value + 1


@pytest.mark.parametrize(
    "field",
    [field.name for field in dataclasses.fields(sparker.TestResult) if field.name != "made"],
)
def test_results_that_differ_in_anything_but_when_they_were_made_are_not_equal(field):
    result = result_of()
    value = getattr(result, field)
    other = dataclasses.replace(result, **{field: changed(value)})
    assert other != result
    assert dataclasses.replace(other, **{field: value}) == result


def test_a_result_is_no_other_thing_and_has_no_hash():
    assert result_of() != 1
    assert result_of() != dataclasses.replace(result_of(), models=None)
    with pytest.raises(TypeError, match="unhashable"):
        hash(result_of())


@pytest.mark.parametrize("numbers", [np.int64, np.uint32, float])
def test_whole_numbers_of_any_kind_are_numbers(numbers, tmp_path):
    settings = QUICK | {"seed": numbers(3), "n_toys": numbers(11), "expected": numbers(50)}
    result = sparker.test(*make_samples(), **settings, store=tmp_path / "store")
    assert sparker.TestResult.load(saved(result, tmp_path)) == result
    assert json.loads(json.dumps(result.to_dict())) == result.to_dict()


# What a file may hold instead of a result.


def as_saved(**values):
    """The content of the file of a result with other values in its fields."""
    return lambda whole: archive.packed(KIND, dataclasses.replace(result_of().saved(), **values))


def raw(**values):
    """The file with other JSON in its text, and a digest that fits."""
    return lambda whole: with_values(whole, **values)


def text_of(change):
    """The file with its JSON text changed, and a digest that fits."""
    return lambda whole: with_text(whole, change(msgspec.json.encode(value_of(whole))))


def tensors(**values):
    """The file with other shapes, kinds or offsets of all of its arrays."""

    def change(header):
        for one in header.values():
            one |= values

    return lambda whole: with_tensors(whole, change)


def cut(share):
    return lambda whole: whole[: int(share * len(whole))]


def flipped(whole: bytes) -> bytes:
    middle = len(whole) // 2
    return whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :]


def without(name):
    def change(text):
        value = msgspec.json.decode(text)
        del value[name]
        return msgspec.json.encode(value)

    return text_of(change)


def old_format(whole: bytes) -> bytes:
    file = io.BytesIO()
    np.savez(file, header=np.frombuffer(b'{"kind": "test result"}', np.uint8))
    return file.getvalue()


def other_version(whole: bytes) -> bytes:
    size = int.from_bytes(whole[:8], "little")
    head = whole[8 : 8 + size].replace(b'\\"version\\":1', b'\\"version\\":2')
    return whole[:8] + head + whole[8 + size :]


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("executed",)


def transform(**values):
    return as_saved(transform=result_of().transform._replace(**values))


HOSTILE = {
    "empty": (lambda whole: b"", "another format"),
    "text": (lambda whole: b"p_value,significance\n0.02,2.1\n" * 20, "another format"),
    "random bytes": (lambda whole: np.random.default_rng(0).bytes(5000), "another format"),
    "old format": (old_format, "another format, which an older version may have written"),
    "foreign": (lambda whole: safetensors.save({"x": np.zeros(3)}), "sparker did not write it"),
    "foreign metadata": (
        lambda whole: safetensors.save({"x": np.zeros(3)}, {"format": "pt"}),
        "sparker did not write it",
    ),
    "other version": (other_version, "its format has version 2, not 1"),
    **{f"cut at {share:.0%}": (cut(share), "") for share in (0.01, 0.2, 0.5, 0.9, 0.999)},
    "only the end": (lambda whole: whole[len(whole) // 2 :], ""),
    "more at the end": (lambda whole: whole + bytes(8), ""),
    "flipped bit": (flipped, "contents are not those it was written with"),
    "chunk of toys": (lambda whole: with_text(whole, b"{}", "chunk of toys"), "a chunk of toys"),
    "pickle": (lambda whole: pickle.dumps(Bomb()), "another format"),
    "huge header": (lambda whole: (2**62).to_bytes(8, "little") + whole[8:], "another format"),
    "header beyond": (
        lambda whole: len(whole).to_bytes(8, "little") + whole[8:],
        "another format",
    ),
    "header is a list": (lambda whole: (2).to_bytes(8, "little") + b"[]" + whole, ""),
    "header is deep": (
        lambda whole: (90_000).to_bytes(8, "little") + b"[" * 90_000,
        "Expected `object`",
    ),
    "huge shape": (tensors(shape=[2**50]), ""),
    "huge empty shape": (tensors(shape=[2**63, 2**63, 0]), ""),
    "negative shape": (tensors(shape=[-1, -3]), ""),
    "overlapping": (tensors(data_offsets=[0, 24], shape=[3], dtype="F64"), ""),
    "offsets beyond": (tensors(data_offsets=[0, 2**60]), ""),
    "other kind of numbers": (tensors(dtype="BF16"), ""),
    "value is a list": (text_of(lambda text: b"[]"), "Expected `object`"),
    "value is deep": (raw(settings="raw:" + "[" * 40 + "]" * 40), "nested more than 32 deep"),
    "value is very deep": (raw(settings="raw:" + "[" * 9000 + "]" * 9000), "recursion"),
    "a key twice": (text_of(lambda text: text[:-1] + b',"p_value":0.5}'), "a key stands in it twi"),
    "a key very often": (
        text_of(lambda text: text[:-1] + b',"p_value":0.5' * 60_000 + b"}"),
        "a key stands in it tw",
    ),
    "Infinity": (raw(seed="raw:Infinity"), "malformed"),
    "NaN": (raw(seed="raw:NaN"), "malformed"),
    "1e999": (raw(seed="raw:1e999"), "out of range"),
    "1e999 in settings": (raw(settings='raw:{"a":1e999}'), "out of range"),
    "no statistic": (without("statistics"), "missing required field `statistics`"),
    "array that is not there": (raw(statistics=["999", "<f8"]), "999"),
    "array of objects": (raw(statistics=["0", "|O"]), ""),
    "other length": (as_saved(statistics=np.zeros(2)), r"shape \(2,\), not \(K\)|shape"),
    "list for an array": (raw(statistics=[1.0, 2.0, 3.0]), ""),
    "whole numbers": (as_saved(data=np.zeros((N_DATA, 2), int)), "data holds int64"),
    "texts for numbers": (as_saved(data=np.full((N_DATA, 2), "x")), "got `array`"),
    "NaN in the data": (
        as_saved(data=np.full((N_DATA, 2), np.nan)),
        "data has values that are not",
    ),
    "best beyond": (as_saved(best=3), "best is 3"),
    "best is text": (as_saved(best="0"), "Expected `int`"),
    "negative count": (as_saved(above=-1), "Expected `int` >= 0"),
    "interval of three": (as_saved(interval=[0.1, 0.2, 0.3]), "interval"),
    "directions of another fit": (as_saved(directions=np.zeros((3, 2))), "directions"),
    "no way back": (transform(back=np.zeros((2, 1, 1))), "transform.back has shape"),
    "columns that are not there": (transform(kept=np.array([0, 9])), "kept are not"),
    "weights of too few": (as_saved(reference_weights=np.ones(2)), "reference_weights has shape"),
    "negative weights": (
        as_saved(reference_weights=np.tile([-1.0, 2.0], N_REFERENCE // 2)),
        "reference_weights has values that are not between 0 and inf",
    ),
    "no weights": (as_saved(reference_weights=np.zeros(N_REFERENCE)), "are all zero"),
    "weights in words": (as_saved(reference_weights="heavy"), "got `str`"),
    "a picture from elsewhere": (as_saved(pictures=((0, "http://x"),)), "pictures"),
    "a library that is none": (as_saved(frame="os"), "frame is 'os', which is no library"),
    "no version": (as_saved(versions={}), "which version made it"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_file_that_is_no_result_is_refused_and_does_nothing(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = saved(result_of(), tmp_path)
    make, message = HOSTILE[name]
    content = make(path.read_bytes())
    path.write_bytes(content)
    began = time.monotonic()
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=rf"result\.sparker holds no test result .*{message}"):
            sparker.TestResult.load(path)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 16 * (len(content) + 2**18)
    assert time.monotonic() - began < 5
    assert os.listdir(tmp_path) == ["result.sparker"]


def test_the_files_above_are_refused_for_what_was_done_to_them(tmp_path):
    path = saved(result_of(), tmp_path)
    whole = path.read_bytes()
    for make in (as_saved(), raw(), text_of(lambda text: text), lambda whole: whole):
        path.write_bytes(make(whole))
        assert sparker.TestResult.load(path) == result_of()


def test_links_folders_and_pipes_are_no_results(tmp_path):
    path = saved(result_of(), tmp_path)
    link = tmp_path / "link.sparker"
    link.symlink_to(path)
    with pytest.raises(ValueError, match=r"link\.sparker holds no .* it is a link"):
        sparker.load(link)
    with pytest.raises(IsADirectoryError):
        sparker.load(tmp_path)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(ValueError, match="it is no ordinary file"):
            sparker.load(tmp_path / "pipe")


@pytest.mark.parametrize("p_value", [0.5, -5, 0, 1.0001, float("nan"), float("inf"), "0.5", True])
def test_a_p_value_that_was_edited_is_noticed(p_value, tmp_path):
    path = saved(result_of(), tmp_path)
    before = f'\\"p_value\\":{result_of().p_value!r}'.encode()
    whole = path.read_bytes()
    assert whole.count(before) == 1
    after = b'\\"p_value\\":0.5'
    path.write_bytes(whole.replace(before, after + b" " * (len(before) - len(after))))
    with pytest.raises(ValueError, match="contents are not those it was written with"):
        sparker.TestResult.load(path)
    path.write_bytes(as_saved(p_value=p_value)(whole))
    message = (
        "p.value is .*, and its toys give" if p_value == 0.5 else r"Expected .* at `\$.p_value`"
    )
    with pytest.raises(ValueError, match=f"holds no test result .*: {message}"):
        sparker.TestResult.load(path)


@pytest.mark.parametrize("kind", ["permutation", "function", "stopped", "options", "expected"])
def test_a_verdict_is_that_of_the_toys_beside_it(kind, tmp_path):
    """Also by somebody who knows how the digest is made."""
    result = result_of(kind)
    path = saved(result, tmp_path)
    for values, message in (
        ({"p_value": result.p_value / 2}, "p_value is .* and its toys give"),
        ({"above": result.above + 1}, "above is"),
        ({"n_failed": 1}, "n_failed is 1, and 0 toys have no finite statistic"),
        ({"combined_scores": result.combined_scores + 1}, "combined_scores is not what"),
        ({"n_toys": result.n_toys + 1}, "n_toys is"),
        ({"interval": (0.9, 0.1)}, "interval of its p-value is 0.9 to 0.1"),
        ({"interval": (-1.0, 2.0)}, r"Expected `float` >= 0.0 - at `\$.interval"),
        ({"combine": "product" if kind != "function" else "minimum"}, "what its toys give|is"),
        (
            {"p_by_component_test": result.p_by_component_test * 0.9},
            "p_by_component_test is not what its toys give",
        ),
        ({"p_by_family": result.p_by_family * 0.9}, "p_by_family is not what its toys give"),
        ({"combined_scores": result.combined_scores[:0]}, "it has no rows or no toys"),
        ({"null_statistics": result.null_statistics + np.inf}, "n_failed is 0, and"),
    ):
        archive.write(path, KIND, dataclasses.replace(result.saved(), **values))
        with pytest.raises(ValueError, match=f"holds no test result .*({message})"):
            sparker.TestResult.load(path)


def test_a_verdict_by_a_rule_of_ones_own_is_that_of_its_scores(tmp_path):
    own = sparker.test(*make_samples(), **QUICK, combine=lambda p: -p.min(1))
    path = saved(own, tmp_path)
    assert sparker.TestResult.load(path) == own
    archive.write(path, KIND, dataclasses.replace(own.saved(), p_value=0.5))
    with pytest.raises(ValueError, match=r"its p-value is 0.5, and its scores give"):
        sparker.TestResult.load(path)


def test_a_file_that_needs_more_memory_than_there_is_is_not_read(tmp_path, monkeypatch):
    path = saved(result_of(), tmp_path)
    monkeypatch.setattr(archive, "safetensors", None)
    monkeypatch.setattr(archive, "free_on_machine", lambda: 4.0 * path.stat().st_size)
    with pytest.raises(ValueError, match=r"to read it takes .* GiB, and 0.0 GiB are free"):
        sparker.TestResult.load(path)
    monkeypatch.setattr(archive, "free_on_machine", lambda: 1e4)
    with pytest.raises(ValueError, match="bytes, which is far too large"):
        sparker.TestResult.load(path)


def test_a_file_that_is_not_there_is_said_to_be_missing(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nothing\.sparker"):
        sparker.TestResult.load(tmp_path / "nothing.sparker")


def test_a_result_that_cannot_be_written_leaves_the_one_before_and_nothing_else(
    tmp_path, monkeypatch
):
    path = saved(result_of(), tmp_path)

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        result_of("function").save(path)
    assert os.listdir(tmp_path) == ["result.sparker"]
    assert sparker.TestResult.load(path) == result_of()


def test_nothing_but_plain_values_and_arrays_is_ever_written(tmp_path):
    for value in ({"a": Bomb()}, {"a": np.array([Bomb()], object)}):
        with pytest.raises(TypeError, match="Bomb"):
            archive.write(tmp_path / "x.sparker", "x", value)
    assert os.listdir(tmp_path) == []


# What a result says.


@pytest.mark.parametrize("kind", KINDS)
def test_a_result_is_json(kind):
    found = result_of(kind).to_dict()
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["p_value"] == result_of(kind).p_value
    n = sum(len(one["component_tests"]) for one in found["families"])
    assert n == len(result_of(kind).component_tests)


def test_the_result_of_the_least_anomalous_sample_is_json_too(tmp_path):
    result = sparker.test(
        *make_samples(), **(QUICK | KINDS["function"] | {"statistic": lowest_of_all})
    )
    assert (result.p_value, result.above) == (1, 11)
    assert "p = 1, alpha = 0.05 (default), but with 11 toys" in result.summary()
    assert "sigma" not in result.summary()
    assert "inf" not in result.summary()
    assert "inf" not in repr(result)
    found = result.to_dict()
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert sparker.TestResult.load(saved(result, tmp_path)) == result


def test_the_dictionary_counts_as_the_result_does():
    result = result_of()
    found = result.to_dict()
    assert found["toys"] == {"compared": 11, "above": result.above, "failed": 0}
    assert found["p_interval"]["low"] <= result.p_value <= found["p_interval"]["high"]
    assert (found["significance_interval"]["high"] is None) == (result.above == 0)
    assert found["significance_interval"]["low"] <= found["significance"]
    assert found["width"] == result.widths[result.best]
    assert found["most_significant"] == {"family": result.decided[0], "scale": result.decided[1]}
    assert [one["family"] for one in found["families"]] == list(result.families)
    at_best = found["families"][0]["component_tests"][result.best]
    assert at_best["value"] == result.t[result.best]
    assert at_best["null_median"] == np.median(result.null_t[:, result.best])
    assert at_best["null_95"] == np.quantile(result.null_t[:, result.best], 0.95)
    assert [kernel["location"] for kernel in found["kernels"]] == result.locations.tolist()


def test_the_summary_has_the_decision_and_every_answer():
    result = result_of()
    lines = result.summary()
    assert text.decision(result) in " ".join(lines.split())
    noted = dataclasses.replace(result, n_failed=3, notes=("mind this", "and that"))
    assert "3 toys had no finite test statistic" in noted.summary()
    assert "width" not in result_of("function").summary()
    assert text.decision(result) in repr(result)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("function", "stopped")])
def test_scores_are_the_log_ratio_of_the_rows_as_given(kind):
    result = result_of(kind)
    for rows, components, scores in zip(
        make_samples(),
        (result.reference_components, result.data_components),
        (result.reference_log_ratio, result.data_log_ratio),
        strict=True,
    ):
        assert components.shape == (len(rows), 3)
        np.testing.assert_allclose(components.sum(1), scores)
        np.testing.assert_allclose(result.components(rows), components)
        np.testing.assert_allclose(result.log_ratio(rows), scores)
    assert np.ptp(result.data_log_ratio) > 0
    fitted = result.transform(make_samples()[1])
    competition = sparker.engine.independent if kind == "options" else sparker.engine.softmax
    np.testing.assert_allclose(
        sparker.engine.log_ratio(result.model, fitted, competition),
        result.data_log_ratio,
        rtol=1e-6,
    )


def test_scores_give_the_statistic_of_the_data():
    result = result_of()
    f = (
        result.data_log_ratio.sum()
        - N_DATA / N_REFERENCE * np.expm1(result.reference_log_ratio).sum()
    )
    assert 2 * f == pytest.approx(result.t[result.best], rel=1e-4)


def test_new_rows_need_the_columns_of_the_test():
    with pytest.raises(ValueError, match="rows has 3 columns, the test was made with 2"):
        result_of().log_ratio(np.zeros((4, 3)))
    with pytest.raises(ValueError, match=r"rows cannot be compared .*\n- column 1: 1 infinite val"):
        result_of().log_ratio([[0.0, np.inf]])


def test_what_a_new_row_lacks_is_taken_for_the_median():
    result = result_of()
    median = np.median(np.concatenate([result.reference, result.data])[:, 1])
    np.testing.assert_array_equal(
        result.log_ratio([[0.5, np.nan]]), result.log_ratio([[0.5, median]])
    )


def test_kernels_that_compete_in_a_way_of_their_own_cannot_score_new_rows():
    own = sparker.engine.Competition(
        sparker.engine.softmax.activation, sparker.engine.softmax.response
    )
    result = dataclasses.replace(result_of(), competition=plain(own))
    with pytest.raises(ValueError, match="cannot be scored: the kernels competed"):
        result.log_ratio(make_samples()[1])


def test_other_statistics_have_no_model():
    result = result_of("function")
    assert result.models is result.data_log_ratio is result.reference_log_ratio is None
    assert not len(result.widths)
    assert [reading.scale for reading in result.component_tests] == [0, 1]
    for ask in ("model", "locations"):
        with pytest.raises(ValueError, match="fits no kernels: there is no model"):
            getattr(result, ask)
    with pytest.raises(ValueError, match="there is no model"):
        result.log_ratio(make_samples()[1])


def test_a_planted_cluster_is_found_at_its_place_in_the_users_units():
    reference, data = (x * [1000, 1] + [5e4, -7] for x in make_samples(2))
    widths = sparker.WidthConfig(steps=60, n_widths=3, first=0.8, last=0.2)
    result = sparker.test(reference, data, **(QUICK | {"widths": widths, "n_toys": 19}))
    assert result.above == 0
    strongest = result.locations[np.argmax(result.model.a)]
    np.testing.assert_allclose((strongest - [5e4, -7]) / [1000, 1], CLUSTER, atol=0.3)
    assert set(np.argsort(-result.data_log_ratio)[:12]) == set(range(12))
    assert 1 <= result.at_least <= 12


def test_a_tail_is_fitted_to_the_toys_of_the_result():
    with pytest.raises(ValueError, match="at least 200 finite toys, got 11"):
        result_of().tail_fit()
    rng = np.random.default_rng(1)
    result = result_of()
    n = len(result.component_tests)
    toys, t = rng.gumbel(size=(1000, n)), np.full(n, 9.0)
    more = dataclasses.replace(result, statistics=t, null_statistics=toys)
    found = more.tail_fit()
    rule = more.combine
    families = [reading.family for reading in result.component_tests]
    assert found == sparker.calibration.tail.fit_tail(t, toys, rule, families=families)
    other = dataclasses.replace(more, combine="mine")
    with pytest.raises(ValueError, match="not mine"):
        other.tail_fit()


# How features are brought to comparable scales.

PREPROCESS = [sparker.decorrelate, sparker.standardise, sparker.whiten, sparker.unchanged]


def mixed(dtype=np.float64, n=300):
    """Correlated columns of very different sizes, one of them constant."""
    x = np.random.default_rng(0).normal(size=(n, 3))
    x[:, 1] += x[:, 0]
    x = np.insert(x * [1e-4, 1, 1e5] + [1, 0, -3e5], 1, 7.0, axis=1)
    return x.astype(dtype)


@pytest.mark.parametrize("preprocess", PREPROCESS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_there_and_back_again(preprocess, dtype):
    x = mixed(dtype)
    transform = preprocess(x)
    fitted = transform(x)
    assert fitted.dtype == dtype
    assert fitted.shape == (300, 3)
    assert transform.dropped.tolist() == [1]
    scale = x.std(0) + 1e-6
    eps = 1e-2 if dtype == np.float32 else 1e-9
    np.testing.assert_allclose(transform.inverse(fitted) / scale, x / scale, atol=eps)


def test_standardised_columns_have_mean_zero_and_variance_one():
    fitted = sparker.standardise(mixed())(mixed())
    np.testing.assert_allclose(fitted.mean(0), 0, atol=1e-9)
    np.testing.assert_allclose(fitted.var(0), 1)
    np.testing.assert_allclose(
        np.corrcoef(fitted.T), np.corrcoef(mixed()[:, [0, 2, 3]].T), atol=1e-9
    )


def test_whitened_points_have_unit_variance_in_every_direction():
    fitted = sparker.whiten(mixed())(mixed())
    np.testing.assert_allclose(fitted.mean(0), 0, atol=1e-9)
    np.testing.assert_allclose(np.cov(fitted.T, bias=True), np.eye(3), atol=1e-9)


def test_whitening_leaves_out_directions_without_variance():
    x = np.random.default_rng(0).normal(size=(300, 2))
    x = np.concatenate([x, 1000 * x[:, :1] + 5], axis=1)  # the first column in other units
    transform = sparker.whiten(x)
    assert transform(x).shape == (300, 2)
    np.testing.assert_allclose(np.cov(transform(x).T, bias=True), np.eye(2), atol=1e-9)
    np.testing.assert_allclose(transform.inverse(transform(x)), x, atol=1e-6)
    wide = np.random.default_rng(0).normal(size=(10, 30))
    transform = sparker.whiten(wide)
    assert transform(wide).shape == (10, 9)
    np.testing.assert_allclose(transform.inverse(transform(wide)), wide, atol=1e-6)
    np.testing.assert_allclose(np.cov(transform(wide).T, bias=True), np.eye(9), atol=1e-9)


@pytest.mark.parametrize("way", [sparker.decorrelate, sparker.whiten])
def test_of_very_many_columns_no_pairs_are_taken(way):
    wide = np.random.default_rng(0).normal(size=(4, 9000)) + np.arange(4)[:, None]
    tracemalloc.start()
    fitted = way(wide)(wide)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 9000**2 / 10
    if way is sparker.decorrelate:
        np.testing.assert_array_equal(fitted, sparker.standardise(wide)(wide))


def directions(points):
    """How many count, by their variances."""
    variance = np.linalg.eigvalsh(np.cov(points.T))
    return variance.sum() ** 2 / (variance**2).sum()


def correlated(d, n=2000):
    """Columns that have most of their variance in common."""
    rng = np.random.default_rng(d)
    return rng.normal(size=(n, d)) + 2 * rng.normal(size=(n, 1))


def test_a_few_directions_are_all_stretched_to_one_length():
    fitted = sparker.decorrelate(mixed())(mixed())
    np.testing.assert_allclose(np.cov(fitted.T, bias=True), np.eye(3), atol=1e-9)


def test_of_many_directions_no_more_are_stretched_than_may_count():
    x = correlated(40)
    assert directions(sparker.standardise(x)(x)) < 3
    assert directions(sparker.decorrelate(x)(x)) == pytest.approx(10, rel=1e-3)
    np.testing.assert_allclose(
        sparker.decorrelate(x).inverse(sparker.decorrelate(x)(x)), x, atol=1e-9
    )


def test_where_many_directions_count_columns_are_only_standardised():
    x = np.random.default_rng(0).normal(size=(500, 15))
    fitted, expected = (way(x)(x) for way in (sparker.decorrelate, sparker.standardise))
    np.testing.assert_array_equal(fitted, expected)


def test_a_column_that_stands_there_twice_is_not_torn_apart():
    x = np.random.default_rng(0).normal(size=(500, 2))
    twice = np.concatenate([x, x[:, :1] + 1e-7 * x[:, 1:]], axis=1)
    variance = np.linalg.eigvalsh(np.cov(sparker.decorrelate(twice)(twice).T))
    assert variance[0] < 1e-8  # still flat: its rounding is no direction of its own
    np.testing.assert_allclose(variance[1:], 1, rtol=1e-2)


def test_a_direction_of_the_fit_is_told_in_columns():
    x = mixed()
    for way in (sparker.standardise, sparker.decorrelate, sparker.whiten):
        transform = way(x)
        direction = np.array([0.6, 0.0, 0.8])
        score = transform(x) @ direction
        told = transform.loadings(direction)
        columns = (x - x.mean(0))[:, transform.kept] / transform.units
        np.testing.assert_allclose(np.corrcoef(columns @ told, score)[0, 1], 1)


@pytest.mark.parametrize("way", [sparker.decorrelate, sparker.whiten])
def test_the_plane_to_draw_in_is_the_same_for_two_halves_of_a_sample(way):
    x = correlated(5, 4000) * [1, 2, 1, 1, 1]
    x[:, 4] += 2 * np.random.default_rng(0).normal(size=4000)
    planes = []
    for half in (x[::2], x[1::2]):
        transform = way(half)
        directions = transform.principal(transform(half), 2)
        np.testing.assert_allclose(directions.T @ directions, np.eye(2), atol=1e-9)
        planes.append([transform.loadings(direction) for direction in directions.T])
    np.testing.assert_allclose(np.abs(np.sum(np.multiply(*planes), 1)), 1, atol=0.02)


def test_rows_off_a_thin_direction_are_found():
    rng = np.random.default_rng(0)
    reference, data = (rng.normal(size=(n, 2)) for n in (2000, 400))
    for x in (reference, data):
        x[:, 1] = x[:, 0] + 0.03 * x[:, 1]
    data[:12, 1] = data[:12, 0] + 0.2  # in the middle of the sample, beside the line
    settings = {"n_toys": 39, "explain": False}
    plain = sparker.test(reference, data, **settings, preprocess=sparker.standardise)
    found = sparker.test(reference, data, **settings)
    assert found.p_value == 1 / 40
    assert np.mean(np.argsort(-found.data_log_ratio)[:12] < 12) > np.mean(
        np.argsort(-plain.data_log_ratio)[:12] < 12
    )


def levels(n_levels, n=2000, seed=0):
    """A category as flags: one for each level."""
    return np.eye(n_levels)[np.random.default_rng(seed).integers(0, n_levels, n)]


def test_numbers_alone_are_stretched_along_their_principal_axes_and_turned_back():
    """To the bit: what stands beside numbers in other tables changes nothing of these."""
    for d, dtype in ((2, np.float32), (7, np.float64), (15, np.float64)):
        x = np.exp(0.3 * correlated(d)).astype(dtype)
        plain = sparker.standardise(x)
        z = plain(x)
        variance, axes = np.linalg.eigh((z.T @ z).astype(np.float64) / len(x))
        variance = np.maximum(variance, 1e-3)

        def count(power, variance=variance):
            left = variance ** (1 - power)
            return float(left.sum() ** 2 / (left**2).sum())

        low, high = (0.0, 1.0) if d > 10 else (1.0, 1.0)
        for _ in range(30 if d > 10 else 0):
            middle = (low + high) / 2
            low, high = (middle, high) if count(middle) < 10 else (low, middle)
        stretch = variance ** (-low / 2)
        matrix = plain.matrix[:, None] * ((axes * stretch) @ axes.T)
        back = ((axes / stretch) @ axes.T) * plain.back
        expected = plain._replace(matrix=matrix, back=back)
        for is_numeric in (None, np.ones(d, bool)):
            for found, own in zip(sparker.decorrelate(x, is_numeric), expected, strict=True):
                np.testing.assert_array_equal(found, own)
                assert found.dtype == own.dtype


@pytest.mark.parametrize("order", [np.arange(27), np.random.default_rng(3).permutation(27)])
def test_numbers_are_decorrelated_whatever_flags_stand_beside_them(order):
    numbers = np.exp(0.3 * correlated(7))
    flags = np.concatenate([levels(n, seed=n) for n in (5, 7, 8)], axis=1)
    is_number = order < 7
    points = np.concatenate([numbers, flags], axis=1)[:, order]
    alone = sparker.decorrelate(numbers[:, order[is_number]])
    fitted = sparker.decorrelate(points)(points)
    np.testing.assert_allclose(fitted[:, is_number], alone(numbers[:, order[is_number]]))
    np.testing.assert_allclose(fitted[:, ~is_number].std(0), 0.7)
    transform = sparker.decorrelate(points)
    np.testing.assert_allclose(transform.inverse(fitted), points, atol=1e-9)
    np.testing.assert_allclose(
        transform.deviations(fitted, np.arange(27)),
        (points - points.mean(0)) / transform.units,
        atol=1e-9,
    )


def test_coordinates_of_an_embedding_do_not_count_among_the_numbers():
    numbers, coordinates = correlated(4), np.random.default_rng(1).normal(size=(2000, 60))
    points = np.concatenate([coordinates, numbers], axis=1)
    is_numeric = np.arange(64) >= 60
    fitted = sparker.decorrelate(points, is_numeric)(points)
    np.testing.assert_allclose(np.cov(fitted[:, 60:].T, bias=True), np.eye(4), atol=1e-9)
    np.testing.assert_allclose(fitted[:, :60], sparker.standardise(coordinates)(coordinates))


def test_flags_that_follow_from_others_are_decorrelated_among_themselves():
    country = levels(4)
    table = np.concatenate([correlated(7), country, country], axis=1)
    odd = table[:1].copy()
    odd[0, 11:] = np.roll(odd[0, 11:], 1)  # the currency of another country
    transform = sparker.decorrelate(table)
    away = np.linalg.norm(transform(odd)[:, 7:])
    assert away > 5 * np.linalg.norm(transform(table)[:, 7:], axis=1).max()


def test_rows_that_break_a_correlation_are_found_beside_categories():
    found = sparker.test(*swapped.pair(200), n_toys=39, explain=False)
    assert found.p_value == 1 / 40
    assert found.notes == ()


def notes_of(n_numbers, n_levels=0, **settings):
    reference, data = (
        np.concatenate([correlated(n_numbers, n), levels(n_levels, n)], axis=1)
        if n_levels
        else correlated(n_numbers, n)
        for n in (300, 100)
    )
    quick = {"n_toys": 3, "explain": False, "statistic": sparker.statistics.Mahalanobis()}
    return sparker.test(reference, data, **quick, **settings).notes


def test_a_note_says_when_numbers_are_not_decorrelated_and_why():
    assert notes_of(7, 8) == notes_of(9) == ()
    (part,) = notes_of(12, 8)
    assert part.startswith("the 12 numeric columns are decorrelated in part: in full, more than 10")
    independent = np.random.default_rng(0).normal(size=(400, 15))
    made = sparker.test(
        independent[:300],
        independent[300:],
        n_toys=3,
        explain=False,
        statistic=sparker.statistics.Mahalanobis(),
    )
    (note,) = made.notes
    assert note.startswith("the 15 numeric columns are not decorrelated: more than 10 directions")
    assert notes_of(12, preprocess=sparker.standardise) == ()


def test_of_too_many_columns_a_note_says_that_none_is_decorrelated():
    wide = np.random.default_rng(0).normal(size=(4, 9000))
    (note,) = left_correlated(sparker.decorrelate(wide), wide)
    assert note.startswith("no column is decorrelated: there are more than 8,192")


def test_columns_in_other_units_do_not_count_again():
    x = correlated(7)
    twice = np.concatenate([x, -1000 * x + 3], axis=1)
    transform = sparker.decorrelate(twice)
    variance = np.linalg.eigvalsh(np.cov(transform(twice).T, bias=True))
    np.testing.assert_allclose(variance[:7], 0, atol=1e-8)
    np.testing.assert_allclose(variance[7:], 1, atol=1e-8)
    assert left_correlated(transform, twice) == ()


def test_numbers_of_few_values_stand_apart_where_numbers_are_too_many():
    grades = np.random.default_rng(2).integers(1, 6, (2000, 8)).astype(float)
    together = np.concatenate([correlated(7), grades[:, :3]], axis=1)  # ten in all
    fitted = sparker.decorrelate(together)(together)
    np.testing.assert_allclose(np.cov(fitted.T, bias=True), np.eye(10), atol=1e-9)
    apart = np.concatenate([correlated(7), grades], axis=1)
    transform = sparker.decorrelate(apart)
    fitted = transform(apart)
    np.testing.assert_allclose(np.cov(fitted[:, :7].T, bias=True), np.eye(7), atol=1e-9)
    (note,) = left_correlated(transform, apart)
    assert note.startswith(
        "8 numeric columns of at most 20 values are decorrelated apart from the 7"
    )


def test_a_preprocessing_of_ones_own_learns_which_columns_are_numbers_if_it_asks():
    seen = []

    def asking(points, scale=1.0, *, is_numeric):
        seen.append((scale, is_numeric.tolist()))
        return sparker.standardise(points)

    def plain(points, scale=2.0):
        seen.append(scale)
        return sparker.standardise(points)

    rng = np.random.default_rng(0)
    tables = [
        {"x": rng.normal(size=n), "c": rng.choice(["a", "b", "c"], n), "y": rng.normal(size=n)}
        for n in (100, 60)
    ]
    for preprocess in (asking, plain):
        quick = {"n_toys": 3, "explain": False, "statistic": sparker.statistics.Mahalanobis()}
        sparker.test(*tables, preprocess=preprocess, **quick)
    assert seen == [(1.0, [True, False, False, False, True]), 2.0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_plane_of_a_weighted_reference_is_that_of_its_rows_repeated(dtype):
    rng = np.random.default_rng(0)
    times = rng.integers(0, 4, 300)
    points = rng.normal(size=(300, 4)) * [1, 2, 1, 1.5]
    points[times == 0, 0] *= 9  # rows without weight have no say
    points = points.astype(dtype)
    found = sparker.engine.preprocess.principal_directions(points, 2, 0.1 * times)
    repeated = sparker.engine.preprocess.principal_directions(np.repeat(points, times, 0), 2)
    alike = sparker.engine.preprocess.principal_directions(points, 2)
    np.testing.assert_allclose(found, repeated, atol=1e-5 if dtype == np.float32 else 1e-12)
    assert np.abs(found - alike).max() > 0.5


def test_a_weighted_result_has_the_plane_of_its_weights():
    result = result_of("expected")
    fitted = result.transform(make_samples()[0])
    directions = result.transform.principal(fitted, 2, result.reference_weights)
    np.testing.assert_allclose(result.reference_plane, fitted @ directions)
    np.testing.assert_array_equal(result.directions, directions)
    plain = fitted @ result.transform.principal(fitted, 2)
    assert np.abs(plain - result.reference_plane).max() > 1e-3


def test_unchanged_is_unchanged():
    np.testing.assert_array_equal(sparker.unchanged(mixed())(mixed()), mixed()[:, [0, 2, 3]])


def with_constant(x, value=7.0):
    return np.insert(x, 1, value, axis=1)


def test_a_constant_column_is_left_out_and_noted():
    reference, data = make_samples()
    result = sparker.test(with_constant(reference), with_constant(data), **QUICK)
    np.testing.assert_array_equal(result.t, result_of().t)
    assert result.notes == ("column 1 is constant and not used",)
    assert result.to_dict()["dropped_columns"] == [1]
    assert np.all(result.locations[:, 1] == 7)
    assert "Note       column 1 is constant and not used" in result.summary()


def test_data_that_stray_from_a_constant_column_of_the_reference_are_noted():
    reference, data = (with_constant(x) for x in make_samples())
    data[:3, 1] = 8

    def draw(rng, n):
        return with_constant(draw_rows(rng, n))

    result = sparker.test(reference, data, **QUICK, null=sparker.Simulator(draw))
    np.testing.assert_array_equal(result.t, result_of("simulator").t)
    assert len(result.notes) == 2
    assert "column 1 never varies in the reference, but 3 data rows differ" in result.notes[1]


def test_units_do_not_matter_to_a_single_bit_where_they_differ_by_powers_of_two():
    units = np.array([2.0**20, 2.0**-30])
    result = sparker.test(*(x * units for x in make_samples()), **QUICK)
    np.testing.assert_array_equal(result.t, result_of().t)
    np.testing.assert_array_equal(result.null_t, result_of().null_t)
    np.testing.assert_array_equal(result.locations, result_of().locations * units)
    plain = sparker.test(*make_samples(), **QUICK, preprocess=sparker.unchanged)
    assert not np.array_equal(plain.t, result_of().t)
