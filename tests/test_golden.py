"""The whole package against recorded outcomes; ``golden.py`` says how to record others."""

import copy

import golden
import pytest

KEPT = golden.read()


@pytest.mark.parametrize("name", golden.TESTS)
def test_outcome_is_the_recorded_one(name):
    found = golden.outcome(golden.TESTS[name]())
    assert not [one for one in golden.differences(KEPT[name], found) if one.too_much]


def changed(change):
    """Name what differs too much once an outcome is changed in place."""
    kept = KEPT["default"]
    found = copy.deepcopy(kept)
    change(found)
    return [one.what for one in golden.differences(kept, found) if one.too_much]


def first(outcome, *, trained):
    return next(one for one in outcome["statistics"] if one["trained"] == trained)["values"]


@pytest.mark.unit
def test_differences_that_matter_are_found():
    def scale(values, factor):
        values[:] = [factor * value for value in values]

    assert changed(lambda found: None) == []
    assert changed(lambda found: scale(first(found, trained=False), 1 + 1e-4)) == ["closed form"]
    assert changed(lambda found: scale(first(found, trained=True), 1 + 1e-4)) == []
    assert changed(lambda found: first(found, trained=True).reverse()) == ["kernels"]
    assert changed(lambda found: found["statistics"].pop()) == ["components"]
    assert changed(lambda found: found["statistics"][0].update(scale=9.0)) == ["scales"]
    assert changed(lambda found: found["combined"].reverse()) == ["combined"]
    assert changed(lambda found: found.update(p_value=0.2)) == ["p"]
    assert changed(lambda found: scale(found["p_by_family"], 2)) == ["p of families"]
    assert changed(lambda found: found.update(toys_compared=17)) == ["toys compared"]
    assert changed(lambda found: found.update(at_least=[None, 2])) == ["at least", "missing"]
    assert changed(lambda found: found["top_rows"].__setitem__(slice(3), [57, 58, 59])) == [
        "top rows"
    ]
    assert changed(lambda found: found["regions"].pop()) == ["rules"]
    assert changed(lambda found: found["regions"][0].update(data_rows=8)) == ["rules"]
    assert changed(lambda found: found["columns"].update({"column 0": 0.1})) == ["p of columns"]
