"""The study of the product: samples by number, lines that are not made twice, powers of lines."""

import json
from itertools import product as pairs

import numpy as np
import pytest
from experiments.power import product, product_lines, product_tables, tables
from experiments.power.product_problem import sample, seed_of
from experiments.power.product_problems import FURTHER, NEAR_NULL, TWELVE, problems
from experiments.power.product_summary import summary

import sparker

PROBLEM = "wine, hidden 0 10 %"
pytestmark = pytest.mark.unit


def line(problem, method, number, p_value, n_toys=99):
    return {
        **product_lines.Work(problem, method, number, n_toys)._asdict(),
        "p_value": p_value,
        "n_features": 13,
        "seconds": {"total": 1.0 + number},
        "versions": {"sparker": "1", "device": "cpu"},
    }


def a_few():
    """Two problems and two methods; in the first the other is better, in the second nobody is."""
    for number, problem in pairs(range(20), (PROBLEM, NEAR_NULL[0])):
        first = problem == PROBLEM
        yield line(problem, "default", number, 0.05 if first and number < 5 else 0.5)
        yield line(problem, "Frechet", number, 0.01 if first and number < 15 else 0.5)


def test_a_sample_is_the_same_twice_and_another_is_another():
    for name in (PROBLEM, "1-D bulk", "5-d ring 6 %"):
        problem = problems()[name]
        for one, again, other in zip(*(sample(problem, i) for i in (3, 3, 4)), strict=True):
            np.testing.assert_array_equal(one, again)
            assert not np.array_equal(one, other)


def test_seeds_stay_what_they_are():
    assert seed_of("jets 2 %", 7) == 1837491892469908679
    assert len({seed_of(name, i) for name in problems() for i in range(50)}) == 50 * len(problems())


def test_problems_have_the_sizes_they_say():
    at_hand = [problem for problem in problems().values() if not problem.needs_files]
    assert len(at_hand) == 10 + 1 + 3 + 4 * 8 + 2 * 4 + 2 * 5
    for problem in at_hand:
        reference, data = sample(problem, 0)
        assert len(reference) == problem.n_reference
        if "expected" in problem.settings:  # the number fluctuates, and may tell something
            assert problem.n_data != len(data) < 1.2 * problem.n_data
        else:
            assert len(data) == problem.n_data
        assert reference.shape[1] == data.shape[1]
        assert (data.shape[1] == 1) == problem.one_column


def test_so_many_rows_as_said_are_of_the_other_kind():
    pixels = {row.tobytes() for row in _pixels(8)}
    reference, data = sample(problems()["digits, hidden 8 4 %"], 0)
    assert not any(row.tobytes() in pixels for row in reference)
    assert sum(row.tobytes() in pixels for row in data) == 24


def _pixels(digit):
    from sklearn.datasets import load_digits

    rows, label = load_digits(return_X_y=True)
    return rows[label == digit]


def test_tables_are_read_from_their_files(tmp_path):
    arrays = {"reference_pool": np.zeros((7000, 2)), "anomaly_sg": np.ones((300, 2))}
    np.savez(tmp_path / "gw_ligo_gwak4d.npz", **{k: v.astype("f2") for k, v in arrays.items()})
    reference, data = sample(problems(tmp_path)["LIGO sine-Gaussian 2 %"], 0)
    assert (len(reference), len(data), data.sum()) == (6000, 1000, 2 * 20)
    assert data.dtype == np.float32


def test_there_are_twelve():
    assert len(TWELVE) == 12
    assert not TWELVE.keys() & FURTHER.keys()


def test_a_run_goes_on_where_it_was(tmp_path, monkeypatch, capsys):
    calls = []
    test = sparker.test

    def counted(*samples, **settings):
        calls.append(settings["seed"])
        return test(*samples, **settings)

    monkeypatch.setattr(sparker, "test", counted)
    arguments = ["--keep", str(tmp_path), "--methods", "Mahalanobis", "Frechet", "--toys", "19"]

    def run(samples):
        product.main([*arguments, "--only", PROBLEM, "--samples", samples])
        return capsys.readouterr().out.splitlines()[-1]

    assert run("0:2") == "4 of 4 added"
    assert run("0:2") == "0 of 0 added"
    with (tmp_path / product_lines.FILE).open("a") as file:
        file.write('{"problem": "half a li')
    assert run("3") == "2 of 2 added"
    assert calls == [0, 0, 1, 1, 2, 2]
    (tmp_path / product_lines.FILE).rename(tmp_path / "of another machine.jsonl")
    assert run("1:3") == "0 of 0 added"
    p_values = {product_lines.key_of(one): one["p_value"] for one in product_lines.lines(tmp_path)}
    reference, data = sample(problems()[PROBLEM], 1)
    again = test(reference, data, n_toys=19, seed=1, statistic=sparker.statistics.Frechet())
    assert p_values[PROBLEM, "Frechet", 1, 19] == again.p_value


def test_what_fails_is_said_and_tried_again(tmp_path, monkeypatch, capsys):
    def fails(*samples, **settings):
        raise MemoryError("too large")

    monkeypatch.setattr(sparker, "test", fails)
    arguments = ["--keep", str(tmp_path), "--only", PROBLEM, "--samples", "1", "--methods", "NPLM"]
    for _ in range(2):
        with pytest.raises(SystemExit, match="1 failed"):
            product.main(arguments)
        assert "too large" in capsys.readouterr().err


def test_nothing_is_begun_when_time_is_up(tmp_path, capsys):
    product.main(["--keep", str(tmp_path), "--only", PROBLEM, "--seconds", "-1"])
    assert capsys.readouterr().out.startswith("0 of ")


def test_tests_of_one_column_are_for_one_column():
    def methods(name):
        return {key for key, method in product.METHODS.items() if method.suits(problems()[name])}

    of_one = {"Kolmogorov-Smirnov", "Anderson-Darling"}
    assert of_one <= methods("1-D tail")
    assert not of_one & methods(PROBLEM)
    assert "exact MMD" in methods(PROBLEM) - methods("1-D tail")


def test_powers_are_shares_of_samples():
    found = summary(a_few(), problems())["problems"]
    assert list(found) == [NEAR_NULL[0], PROBLEM]
    of_default, of_frechet = (found[PROBLEM]["toys"]["99"][name] for name in ("default", "Frechet"))
    low, high = sparker.calibration.pvalues.clopper_pearson(5, 20, 0.68)
    assert of_default["5 %"] == {
        "k": 5, "n": 20, "share": 0.25, "low": round(low, 4), "high": round(high, 4)
    }  # fmt: skip
    assert of_default["1 %"]["k"] == 0
    assert of_frechet["1 %"]["k"] == 15
    assert of_default["seconds"] == 10.5
    assert found[PROBLEM]["n_features"] == 13


def test_a_line_made_twice_counts_once():
    twice = [*a_few(), *a_few(), line("a problem that is no more", "default", 0, 0.5)]
    assert summary(twice, problems()) == summary(a_few(), problems())


def test_the_best_of_a_row_is_bold_and_what_is_better_is_counted():
    fewer = [line(PROBLEM, "default", number, 0.05, n_toys=19) for number in range(20)]
    found = summary([*a_few(), *fewer], problems())
    text, others = (
        "\n\n".join("\n".join(table) for table in product_tables.tables(found, unseen=unseen))
        for unseen in (True, False)
    )
    title = "Problems hardly looked at while choosing"
    assert f"| {title} | default | Frechet | default at 1 % | 19 toys |" in text
    assert f"| {PROBLEM} (65 + 40 x 13) | 0.25 | **0.75** | 0.00 | 1.00 |" in text
    assert f"{title}, mean power at 5 % and its standard error: default 0.25 ± 0.10," in text
    assert f"| {NEAR_NULL[0]}† (10,000 + 1,500 x 13) | 0.00 | 0.00 | 0.00 |" in others
    assert PROBLEM not in others
    assert "| mean at 5 % | 0.25 | **0.75** |  | 1.00 |" in text
    assert "On 1 of 1 problems a single other test is better" in text
    assert f"{PROBLEM} (Frechet 0.75 against 0.25)" in text


def test_the_page_takes_the_tables_of_the_product_where_they_are():
    text = tables.README.read_text()
    measured = json.loads((tables.HERE / "result.json").read_text())["problems"]
    once = tables.page(text, measured, summary(a_few(), problems()))
    assert "| Problems hardly looked at while choosing |" in once
    assert tables.page(once, measured) == once
    if product.RESULT.exists():
        assert tables.page(text, measured, json.loads(product.RESULT.read_text())) == text
