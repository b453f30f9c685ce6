"""The command line: files in, verdicts, files and exit codes out, and plain words when not."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time

import click
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import sparker
from sparker.cli.main import main

QUICK = ["--toys", "19", "--kernels", "3"]


def invoke(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two samples as CSV with names, weights, groups, texts and an observable, and as .npy."""
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)
    reference, data = rng.normal(size=(300, 2)), rng.normal(size=(60, 2))
    strange = data.copy()
    strange[:20] = [1.5, 1.5] + 0.05 * rng.normal(size=(20, 2))
    for name, rows in (("reference", reference), ("data", data), ("strange", strange)):
        np.save(folder / f"{name}.npy", rows)
        with (folder / f"{name}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            names = ["x", "y", "mass", "weight", "run", "text", "tilt", "site", "visit"]
            writer.writerow(names)
            for i, row in enumerate(rows):
                group = f"{name}{i // 3}"
                tilt = 2 if row[0] > 0 else 1
                mine = [125 if i < 20 else 80, 1.0, group, f"<b>[red]row {i}", tilt]
                writer.writerow([*row, *mine, "north" if i % 2 else "south", f"{name}{i // 60}"])
    np.save(folder / "pool.npy", rng.normal(size=(300, 2)))
    return folder


FEATURES = ["--columns", "x,y"]


def test_a_verdict_for_people(folder):
    done = invoke("test", folder / "reference.csv", folder / "strange.csv", *FEATURES, *QUICK,
                  "--text", "text")  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "Significant difference (p = 0.05 <= alpha = 0.05 (default)" in done.stdout
    assert "Most anomalous data rows" in done.stdout
    assert "[red]row" in done.stdout  # the user's brackets are no markup


def test_json_has_the_documented_keys_and_nothing_else_is_printed(folder):
    done = invoke("test", folder / "reference.npy", folder / "strange.npy", *QUICK, "--json",
                  "--tail")  # fmt: skip
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["schema"] == 6
    assert found["encoding"]["columns"][1]["column"] == "column 1"
    assert [one["code"] for one in found["warnings"]] == ["order"]  # the cluster comes first
    assert found["warnings"][0]["text"].startswith("column 1 falls along the data rows")
    assert found["p_value"] == 0.05
    assert found["significance_interval"]["high"] is None
    assert found["decision"] == {
        "alpha": 0.05, "given": False, "outcome": "significant difference"
    }  # fmt: skip
    assert found["toys"] == {"compared": 19, "above": 0, "failed": 0}
    assert {row["row"] for row in found["rows"]["most_anomalous"]} <= set(range(20))
    assert "most_anomalous" not in found
    assert 0 < found["how_many"]["at_least"] <= 20
    assert found["regions"][0]["significant"]
    assert len(found["columns_alone"]) == 2
    assert found["files"] == [str(folder / "reference.npy"), str(folder / "strange.npy")]
    assert "at least 200 finite toys" in found["extrapolated"]["refused"]


@pytest.mark.parametrize(("data", "alpha", "code"), [("strange", 0.05, 1), ("data", 0.05, 0)])
def test_exit_codes_follow_alpha(folder, data, alpha, code):
    done = invoke("test", folder / "reference.npy", folder / f"{data}.npy", *QUICK, "--alpha",
                  alpha, "--json")  # fmt: skip
    assert done.exit_code == code, done.output
    found = json.loads(done.stdout)["decision"]
    assert found["alpha"] == alpha
    assert found["given"]
    assert found["outcome"] == f"{'' if code else 'no '}significant difference"


def test_answers_can_be_left_out(folder):
    for data in (["strange.npy"], ["strange.npy", "data.npy"]):
        files = [folder / name for name in ("reference.npy", *data)]
        done = invoke("test", *files, *QUICK, "--no-explain", "--json")
        assert done.exit_code == 0, done.output
        found = json.loads(done.stdout)
        assert "regions" not in found
        assert not any(one["regions"] for one in found.get("samples", []))


def test_a_level_out_of_reach_is_refused_at_once(folder):
    done = invoke("test", folder / "reference.npy", folder / "data.npy", *QUICK, "--alpha", 0.001)
    assert done.exit_code == 2
    assert "--alpha 0.001 is out of reach: the smallest p-value of 19 toys is 0.05" in done.stderr
    assert "ask for 980 more by --toys" in done.stderr


def test_annealing_is_the_librarys(folder):
    done = invoke("test", folder / "reference.npy", folder / "data.npy", "--annealed",
                  "--toys", 19, "--json")  # fmt: skip
    assert done.exit_code == 0, done.output
    result = sparker.test(
        np.load(folder / "reference.npy"),
        np.load(folder / "data.npy"),
        n_toys=19,
        **sparker.presets.annealed(),
    )
    found = json.loads(done.stdout)
    assert found["p_value"] == result.p_value
    assert found["most_significant"]["family"] == result.decided.family
    assert [one["family"] for one in found["families"]] == list(sparker.engine.FAMILIES[:1])


def test_the_answer_is_that_of_the_library(folder):
    done = invoke("test", folder / "reference.npy", folder / "data.npy", *QUICK, "--seed", 3,
                  "--json")  # fmt: skip
    result = sparker.test(
        np.load(folder / "reference.npy"),
        np.load(folder / "data.npy"),
        n_toys=19,
        seed=3,
        config=sparker.FitConfig(n_kernels=3),
    )
    assert json.loads(done.stdout)["p_value"] == result.p_value


def test_files_come_out_and_go_in_again(folder, tmp_path):
    report, rows, saved = tmp_path / "r.html", tmp_path / "rows.csv", tmp_path / "result.sparker"
    done = invoke("test", folder / "reference.csv", folder / "strange.csv", *FEATURES, *QUICK,
                  "--report", report, "--rows", rows, "--save", saved, "--text", "text",
                  "--observables", "mass", "--groups", "run")  # fmt: skip
    assert done.exit_code == 0, done.output
    result = sparker.TestResult.load(saved)
    assert result.names == ("x", "y")
    assert result.files == (str(folder / "reference.csv"), str(folder / "strange.csv"))
    assert result.settings["groups"] is not None
    with rows.open() as file:
        table = list(csv.DictReader(file))
    assert len(table) == 60
    np.testing.assert_allclose(
        [float(row["log_ratio"]) for row in table], result.data_log_ratio, rtol=1e-5
    )
    assert [int(row["row"]) for row in table] == list(range(60))
    probability = [float(row["probability"]) for row in table]
    np.testing.assert_allclose(probability, result.answers.probability, rtol=1e-5)
    assert [int(row["region"]) for row in table] == result.region_of_row.tolist()
    np.testing.assert_allclose([float(row["y"]) for row in table], result.data[:, 1], rtol=1e-8)
    assert "p_value" not in table[0]  # rows in groups have none
    html = report.read_text()
    assert "mass" in html
    assert "strange.csv" in html
    assert "sparker" in html
    again = invoke("report", saved, "--output", tmp_path / "again.html", "--data",
                   folder / "strange.csv", "--text", "text", "--observables", "mass")  # fmt: skip
    assert again.exit_code == 0, again.output
    assert "mass" in (tmp_path / "again.html").read_text()
    again = invoke("report", saved, "--output", tmp_path / "strict.html", "--alpha", 0.01)
    assert again.exit_code == 0, again.output
    assert "alpha = 0.01" in (tmp_path / "strict.html").read_text()
    shown = invoke("info", saved)
    assert "alpha = 0.05 (default)" in shown.stdout


def test_other_nulls(folder):
    pool = folder / "pool.npy"
    for extra in ([*QUICK, "--expected", "60"], ["--stop", "--toys", "60", "--kernels", "3"],
                  [*QUICK, "--null", "simulator", "--pool", pool]):  # fmt: skip
        done = invoke("test", folder / "reference.npy", folder / "strange.npy", *extra, "--json")
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout)["p_value"] <= 0.2


@pytest.fixture(scope="module")
def monte_carlo(tmp_path_factory):
    """A weighted Monte Carlo sample in two parts, and data without weights."""
    folder = tmp_path_factory.mktemp("weighted")
    rng = np.random.default_rng(3)
    for name, n in (("reference", 1000), ("pool", 1000), ("data", 100)):
        x = rng.exponential(1 if name == "data" else 2, n)
        columns = {"x": x} if name == "data" else {"x": x, "weight": np.exp(-x / 2)}
        rows = np.column_stack(list(columns.values()))
        np.savetxt(
            folder / f"{name}.csv", rows, "%.17g", ",", header=",".join(columns), comments=""
        )
    lines = (folder / "pool.csv").read_text().splitlines()
    (folder / "bare.csv").write_text("\n".join(line.partition(",")[0] for line in lines))
    return folder


@pytest.mark.parametrize("expected", [[], ["--expected", "100"]])
def test_a_pool_has_the_weights_of_the_reference(monte_carlo, monkeypatch, expected):
    monkeypatch.chdir(monte_carlo)
    weighted = ["test", "reference.csv", "data.csv", "--weights", "weight", "--null", "simulator",
                "--toys", "39", "--statistic", "ks", "--json", *expected]  # fmt: skip
    done = invoke(*weighted, "--pool", "pool.csv")
    found = json.loads(done.stdout)
    assert 0.05 < found["p_value"] < 0.95
    assert found["warnings"] == []
    assert "of 1,000 rows of the simulator's pool take part" in " ".join(found["notes"])
    done = invoke(*weighted, "--pool", "bare.csv")
    assert done.exit_code == 2
    assert "bare.csv has no column 'weight'" in done.stderr
    assert "--pool-unweighted if they have the density of DATA" in done.stderr
    for pool in ("bare.csv", "pool.csv"):
        done = invoke(*weighted, "--pool", pool, "--pool-unweighted")
        assert json.loads(done.stdout)["p_value"] == 1
        assert "the simulator's pool and the reference have different densities" in done.stderr
        assert invoke(*weighted, "--pool", pool, "--pool-unweighted", "--strict").exit_code == 2


@pytest.fixture(scope="module")
def plain(folder):
    """What is found where everyone may."""
    done = invoke("test", folder / "reference.csv", folder / "strange.csv", *FEATURES, *QUICK,
                  "--json")  # fmt: skip
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("extra", "note"),
    [
        (["--strata", "site"], ""),
        (["--groups", "run", "--group-rows", 2], "at most 2 of each group"),
        (["--weights", "tilt"], "kept with a probability proportional to their weight"),
        (["--weights", "tilt", "--data-weights", "tilt"], ""),
    ],
)
def test_who_may_change_places_is_said_by_columns(folder, plain, extra, note):
    done = invoke("test", folder / "reference.csv", folder / "strange.csv", *FEATURES, *QUICK,
                  *extra, "--json")  # fmt: skip
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["p_value"] <= 0.2
    assert (note in " ".join(found["notes"])) if note else not found["notes"]
    assert found["families"] != plain["families"]  # other labels, or other rows


def test_a_level_that_few_labellings_cannot_reach_is_refused(folder):
    arguments = ("test", folder / "reference.csv", folder / "strange.csv", *FEATURES, "--toys", 19,
                 "--statistic", "mahalanobis", "--groups", "visit")  # fmt: skip
    done = invoke(*arguments, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["toys"]["compared"] == 5
    assert round(6 * found["p_value"]) == pytest.approx(6 * found["p_value"])
    assert "labels can be given in 6 ways only" in found["notes"][0]
    refused = invoke(*arguments, "--alpha", 0.05)
    assert refused.exit_code == 2
    assert "--alpha 0.05 is out of reach: with 6 labellings no p-value" in refused.stderr
    assert "Too few toys to decide at this alpha" in refused.stdout
    assert invoke(*arguments, "--alpha", 0.2).exit_code in (0, 1)


def test_an_interrupted_calibration_says_how_to_go_on(folder, tmp_path):
    files = folder / "reference.npy", folder / "data.npy"
    command = [sys.executable, "-m", "sparker", "test", *files, "--toys", "100000",
               "--kernels", "1", "--steps", "10", "--store", tmp_path / "s"]  # fmt: skip
    environment = os.environ | {"JAX_PLATFORMS": "cpu"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        while not list((tmp_path / "s").glob("toys-*.sparker")):
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same call continues there" in said
    assert "Traceback" not in said


def test_power(folder, tmp_path):
    done = invoke("power", folder / "reference.npy", folder / "strange.npy", "--fractions",
                  "0,0.3", "--n-reference", 200, "--n-data", 40, "--tests", 5, *QUICK,
                  "--figure", tmp_path / "power.png")  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "power at alpha = 0.05, 19 toys a test" in done.stdout
    assert (tmp_path / "power.png").read_bytes().startswith(b"\x89PNG")


def test_info_on_a_table(folder):
    done = invoke("info", folder / "data.csv")
    assert done.exit_code == 0, done.output
    assert "60 rows" in done.stdout
    assert "mass" in done.stdout
    found = json.loads(invoke("info", folder / "data.csv", "--json").stdout)
    assert [column["name"] for column in found["columns"]][:2] == ["x", "y"]


def test_info_says_how_texts_and_pictures_are_compared(tmp_path):
    words = ["one thing", "another thing", "a third, longer one", "no more of them"]
    lines = [f'{i % 3},"{words[i % 4]} {i}",a/{i}.{["png", "JPG"][i % 2]}' for i in range(60)]
    path = tmp_path / "data.csv"
    path.write_text("\n".join(["size,what was said,file", *lines]))
    told = invoke("info", path).stdout
    assert (
        "what was said holds texts: compare them by --text 'what was said' --embed tfidf, "
        "or leave them out by --ignore 'what was said'\n"
    ) in told
    assert "file holds pictures: compare them by --images file --embed efficientnet-lite0" in told
    assert "size holds" not in told
    roles = {one["name"]: one["role"] for one in describe(path)["columns"]}
    assert roles["what was said"] == "text: embed it, or leave it out"
    assert roles["file"] == "names of pictures: embed them, or leave them out"


def describe(path):
    return json.loads(invoke("info", path, "--json").stdout)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["reference.npy", "missing.npy"], "missing.npy"),
        (["reference.csv", "data.csv"], "text: text, 300 different values"),
        (["reference.csv", "data.csv", "--columns", "x,z"], "z"),
        (["reference.csv", "data.csv", "--columns", ""], "has no column without a name"),
        (["reference.csv", "data.csv", "--columns", "x,,y"], "has no column without a name"),
        (["reference.csv", "data.csv", "--columns", "x,x"], "one column named twice"),
        (["reference.npy", "data.npy", "--null", "simulator"], "--null simulator needs --pool"),
        (["reference.npy", "data.npy", "--null", "resample"], "'resample' is not one of"),
        (["reference.csv", "data.csv", "--data-weights", "tilt"], "--data-weights needs --weights"),
        (["reference.csv", "data.csv", "--group-rows", "2"], "--group-rows needs --groups"),
        (
            ["reference.csv", "data.csv", "--null", "simulator", "--strata", "site"],
            "--strata does not go with --null simulator",
        ),
        (
            [
                "reference.csv",
                "strange.csv",
                "--columns",
                "x,y",
                "--null",
                "simulator",
                "--pool",
                "data.csv",
            ],
            "are in the data as well",
        ),
        (["reference.npy", "data.npy", "--report", "no/such/folder/r.html"], "there is no folder"),
        (["reference.npy", "data.npy", "--device", "quantum"], "there is no device 'quantum'"),
        (["reference.npy", "data.npy", "--expected", "-3"], "expected must be a positive number"),
        (["reference.npy", "data.npy", "--alpha", "2"], "2.0 is not in the range"),
    ],
)
def test_what_is_wrong_is_said_in_a_line_or_two(folder, arguments, message, monkeypatch):
    monkeypatch.chdir(folder)
    done = invoke("test", *arguments, *QUICK)
    assert done.exit_code == 2, done.output
    assert message in done.stderr
    assert "Traceback" not in done.output
    assert len(done.stderr.splitlines()) <= 6


def test_errors_of_ours_have_a_code_of_their_own(folder, monkeypatch):
    def broken(*args, **kwargs):
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("sparker.detect.test", broken)
    done = invoke("test", folder / "reference.npy", folder / "data.npy", *QUICK)
    assert done.exit_code == 3
    assert "Internal error: ZeroDivisionError: oh" in done.stderr
    assert "Traceback" not in done.stderr
    told = invoke("--debug", "test", folder / "reference.npy", folder / "data.npy", *QUICK)
    assert "Traceback" in told.stderr


def test_the_demo_finds_the_hidden_digits(tmp_path):
    report = tmp_path / "demo.html"
    done = invoke("demo", "--toys", 9, "--seed", 3, "--output", report)
    assert done.exit_code == 0, done.output
    assert "Too few toys to decide at this alpha (p = 0.1, alpha = 0.05 (default)" in done.stdout
    found = re.search(r"([0-9]+) of them are among the 24 hidden 0s", done.stdout)
    assert int(found[1]) >= 22
    assert "<html" in report.read_text()[:500]
    assert "Now open the report" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--output", "/no/such/folder/x.html"], "there is no folder /no/such/folder; make it"),
        (["--output", "/dev/full", "--toys", "9"], "could not be written to /dev/full"),
        (["--seed", "-1"], "-1 is not in the range"),
        (["--toys", "0"], "0 is not in the range"),
        (["--toys", "9", "--toys", "9"], "--toys is given 2 times, and takes one value"),
    ],
)
def test_the_demo_says_what_is_wrong_in_a_line(arguments, message):
    done = invoke("demo", *arguments)
    assert done.exit_code == 2
    assert message in done.stderr
    assert "Traceback" not in done.output


# Options that are given several times, and columns that have no name.


def single_valued_options():
    """Every option of every command that takes one value."""
    for name, command in main.commands.items():
        for option in command.params:
            if isinstance(option, click.Option) and not (option.multiple or option.is_flag):
                yield name, option.opts[0]


@pytest.mark.unit
@pytest.mark.parametrize(("command", "option"), list(single_valued_options()))
def test_no_option_loses_its_first_value(command, option):
    done = invoke(command, "a", "b", option, "1", f"{option}=1")
    assert done.exit_code == 2
    assert f"{option} is given 2 times, and takes one value; give it once" in done.stderr


def columns_of(*arguments):
    """The columns that a test compares, what it leaves out, and the codes of its warnings."""
    done = invoke("test", *arguments, "--toys", "1", "--statistic", "mahalanobis", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    compared = [one["column"] for one in found["encoding"]["columns"]]
    return compared, {one["name"]: one["why"] for one in found["encoding"]["left_out"]}, done


@pytest.fixture
def table(tmp_path, monkeypatch):
    """Two files as pandas writes them: with a column of row numbers that has no name."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    users = [f"user{i}" for i in range(130)]
    for name, n in (("reference", 120), ("data", 60)):
        frame = pd.DataFrame(rng.normal(size=(n, 2)).round(4), columns=["x", "y"])
        frame["share"] = [f"{value:.1f}%" for value in rng.uniform(0, 100, n)]
        frame["user_id"] = rng.choice(users, n, replace=False)  # some of them return
        frame.to_csv(f"{name}.csv")
        frame.sample(frac=1, random_state=0)[10:].to_csv(f"shuffled-{name}.csv")
        frame.to_csv(f"plain-{name}.csv", index=False)
    return tmp_path


@pytest.mark.unit
@pytest.mark.parametrize(
    ("options", "compared"),
    [
        (["--ignore", "x", "--ignore", "y"], ["share"]),
        (["--ignore", "x", "--ignore", "y,user_id"], ["share"]),
        (["--ignore", ",x", "--ignore", "y"], ["share"]),
        (["--ignore", "x,,y"], ["share"]),
        (["--columns", "x", "--columns", "share"], ["x", "share"]),
        (["--columns", "user_id", "--columns", "x"], None),  # of texts there is no test
        (["--keep", "x", "--keep", "y"], ["x", "y", "share"]),
    ],
)
def test_names_add_up(table, options, compared):
    if compared is None:
        done = invoke("test", "reference.csv", "data.csv", *options)
        assert "user_id: text" in done.stderr
        return
    assert columns_of("reference.csv", "data.csv", *options)[0] == compared


@pytest.mark.unit
@pytest.mark.parametrize("data", ["data.csv", "shuffled-data.csv", "plain-data.csv"])
@pytest.mark.parametrize("reference", ["reference.csv", "shuffled-reference.csv"])
def test_the_index_that_pandas_writes_is_left_out_and_said(table, reference, data):
    compared, left_out, done = columns_of(reference, data)
    assert compared == ["x", "y", "share"]
    said = "has no name and numbers the rows, as the index that pandas writes"
    assert left_out["the first column"] == f"it {said}"
    assert f"Warning: the first column of reference was left out: it {said}" in done.stderr
    assert describe(reference)["columns"][0]["role"] == f"left out: it {said}"
    on_purpose = columns_of(reference, data, "--ignore", "")
    assert on_purpose[0] == compared
    assert "the first column" not in on_purpose[1]
    assert "the first column" not in on_purpose[2].stderr


@pytest.mark.unit
@pytest.mark.parametrize("first", ["", "shuffled-", "plain-"])
def test_info_and_test_say_the_same_of_columns(table, first):
    first += "reference.csv"
    compared, left_out, _ = columns_of(first, "data.csv")
    left_out["" if "plain" not in first else "none"] = left_out.pop("the first column", None)
    for column in describe(first)["columns"]:
        if column["name"] in compared:
            assert (column["kind"], column["role"]) == ("number", "feature")
        else:
            assert column["role"] == f"left out: {left_out[column['name']]}"
    share = next(one for one in describe(first)["columns"] if one["name"] == "share")
    assert 0 <= share["low"] < share["high"] <= 100


@pytest.mark.unit
@pytest.mark.parametrize(
    ("column", "said"),
    [
        ([f"{i}%" if i % 2 else str(i / 100) for i in range(60)], "percentages, such as '1%'"),
        ([f"{i},5" for i in range(60)], "decimals are written with a comma"),
        ([f"{i},5%" for i in range(60)], "decimals are written with a comma"),
        (["?", *map(str, range(59))], "cells are no numbers, while "),
        ([1e200, *range(59)], "beyond 1e+150"),
    ],
)
def test_info_says_what_a_test_would_refuse(tmp_path, column, said):
    for name in ("a", "b"):
        pd.DataFrame({"x": range(0, 120, 2), "y": column}).to_csv(tmp_path / name, index=False)
        (tmp_path / name).rename(tmp_path / f"{name}.csv")
    done = invoke("test", tmp_path / "a.csv", tmp_path / "b.csv", "--keep", "x")
    assert done.exit_code == 2
    role = describe(tmp_path / "a.csv")["columns"][1]["role"]
    assert said in done.stderr
    assert role.startswith("cannot be compared: ")
    assert said in role
