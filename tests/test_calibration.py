"""Making toys: in chunks, into a table, from where they were left, until someone has enough."""

import numpy as np
import pytest

from sparker.calibration.plan import Recipe
from sparker.calibration.store import KIND, SavedChunk, Store, begun
from sparker.calibration.toys import ChunkResult, Table, run, run_locally
from sparker.engine import Ensemble, Toys
from sparker.engine.preprocess import unchanged
from sparker.nulls import Permutation, samples
from sparker.statistics.contract import Chunk
from sparker.statistics.function import EachSample
from sparker.system import archive

pytestmark = pytest.mark.unit

RNG = np.random.default_rng(0)
REFERENCE, DATA = RNG.normal(size=(40, 2)), RNG.normal(size=(10, 2))
ALL = range(12)


def mean_shift(rng, sample):
    means = [weight @ sample.points / weight.sum() for weight in sample[1:]]
    return np.abs(means[1] - means[0])


@pytest.fixture
def drawn():
    """The numbers of the experiments that were made, chunk by chunk."""
    return []


@pytest.fixture
def prepared(drawn):
    observed = samples(REFERENCE, DATA)
    ready = Recipe(observed, Permutation(), unchanged, EachSample(mean_shift), 0).plan().prepared

    def draw(numbers):
        drawn.append(list(numbers))
        return ready.toys.draw(numbers)

    return ready._replace(toys=Toys(draw))


def chunk_of(*numbers, models=None):
    return Chunk(numbers, np.array([[float(i), -float(i)] for i in numbers]), models)


# The table.


def test_a_table_is_ordered_by_number_however_chunks_come():
    table = Table()
    table.add(chunk_of(3, 2))
    assert table.n_in_a_row == 0
    table.add(chunk_of(0, 1, 5))
    assert table.n_in_a_row == 4  # 4 is missing
    np.testing.assert_array_equal(table.first(4)[:, 0], [0, 1, 2, 3])
    np.testing.assert_array_equal(table.first(4, start=2), [[2, -2], [3, -3]])
    with pytest.raises(KeyError):
        table.first(5)


def test_a_table_keeps_the_models_of_the_observed_experiment():
    models = Ensemble(np.zeros((2, 1, 1)), np.zeros((2, 1)), np.ones(2))
    table = Table()
    for chunk in (chunk_of(1), chunk_of(0, models=models), chunk_of(2)):
        table.add(chunk)
    assert table.models is models


# Making what is missing.


def test_all_experiments_are_made_in_chunks_and_progress_is_told(prepared, drawn):
    told = []
    table = run(prepared, ALL, seed=0, chunk=5, on_progress=told.append)
    assert drawn == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9], [10, 11]]
    assert told == [0, 5, 10, 12]
    assert table.n_in_a_row == 12
    expected = [mean_shift(None, prepared.toys.draw([i]).alone(0)) for i in ALL]
    np.testing.assert_array_equal(table.first(12), expected)


def test_what_a_store_has_is_not_made_again(prepared, drawn, tmp_path):
    told = []
    run(prepared, [0, 1, 6, 7], seed=0, chunk=2, store=tmp_path)
    drawn.clear()
    table = run(prepared, range(8), seed=0, chunk=2, store=tmp_path, on_progress=told.append)
    assert drawn == [[2, 3], [4, 5]]
    assert told == [4, 6, 8]
    np.testing.assert_array_equal(table.first(8), run(prepared, range(8), seed=0, chunk=2).first(8))


def test_toys_that_were_not_asked_for_are_no_progress(prepared, tmp_path):
    run(prepared, range(8), seed=0, chunk=4, store=tmp_path)
    told = []
    table = run(prepared, range(4), seed=0, chunk=4, store=tmp_path, on_progress=told.append)
    assert told == [4]
    assert table.n_in_a_row == 8


def test_who_has_enough_stops_it_after_any_chunk(prepared, drawn):
    seen = []

    def enough(table):
        seen.append(table.n_in_a_row)
        return table.n_in_a_row >= 6

    table = run(prepared, ALL, seed=0, chunk=4, should_stop=enough)
    assert seen == [0, 4, 8]
    assert drawn == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert table.n_in_a_row == 8


def test_who_has_enough_already_waits_for_nothing(prepared, drawn, tmp_path):
    run(prepared, range(4), seed=0, chunk=4, store=tmp_path)
    drawn.clear()
    run(prepared, ALL, seed=0, store=tmp_path, chunk=4, should_stop=lambda table: True)
    assert drawn == []


def test_another_executor_makes_them_and_is_closed_once_it_is_not_needed(prepared, drawn):
    closed = []

    def backwards(numbers, size):
        try:
            yield from run_locally(prepared, 0, {})(numbers[::-1], size)
        finally:
            closed.append(True)

    table = run(prepared, ALL, seed=0, chunk=5, executor=backwards)
    assert drawn[0] == [11, 10, 9, 8, 7]
    assert closed == [True]
    expected = run(prepared, ALL, seed=0, chunk=5).first(12)
    np.testing.assert_array_equal(table.first(12), expected)
    run(prepared, ALL, seed=0, chunk=5, executor=backwards, should_stop=lambda t: len(t.rows) > 4)
    assert closed == [True, True]


def test_a_store_knows_what_made_its_toys(prepared, tmp_path):
    def elsewhere(numbers, size):
        for result in run_locally(prepared, 0, {})(numbers, size):
            yield ChunkResult(result.chunk, {"sparker": "of another machine"})

    run(prepared, [0, 1], seed=0, chunk=2, store=tmp_path, executor=elsewhere)
    saved = archive.read(tmp_path / "toys-000000-000001.sparker", {KIND: SavedChunk})
    assert saved.made_by == {"sparker": "of another machine"}


# The size of a chunk.


def test_a_chunk_is_found_out_once_and_only_where_no_store_knows(prepared, drawn, tmp_path):
    asked = []

    def three():
        asked.append(True)
        return 3

    run(prepared, range(6), seed=0, chunk=three, store=tmp_path)
    assert drawn == [[0, 1, 2], [3, 4, 5]]
    assert begun(tmp_path) == 3
    run(prepared, range(9), seed=0, chunk=three, store=tmp_path)
    assert drawn[2:] == [[6, 7, 8]]
    assert asked == [True]


def test_left_out_it_is_what_suits_the_statistic(prepared, drawn, monkeypatch):
    asked = []

    def chunk_size(self, toys, number, n_toys):
        asked.append((number, n_toys))
        return 7

    monkeypatch.setattr(type(prepared.statistic), "chunk_size", chunk_size)
    run(prepared, ALL, seed=0)
    assert asked == [(1, 12)]  # by the first toy, not by the data
    assert [len(numbers) for numbers in drawn] == [7, 5]
    run(prepared, [0], seed=0)  # with no toy there is nobody to ask
    assert len(asked) == 1


def test_a_store_keeps_to_the_chunk_it_was_begun_with(prepared, drawn, tmp_path):
    Store(tmp_path, {}, 4)
    run(prepared, range(8), seed=0, chunk=3, store=tmp_path)
    assert drawn == [[0, 1, 2, 3], [4, 5, 6, 7]]
