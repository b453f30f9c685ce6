"""Options of every command: no numbers, absurd ones, and some that contradict each other."""

import click
import numpy as np
from experiments.reliability.attack import attack
from experiments.reliability.box import READ, Box
from experiments.reliability.ends import check, either, plain, refused

from sparker.cli.main import main

NO_NUMBERS = ("nan", "inf", "-inf", "1e400", "", "ten", "0x10", "--")
HUGE = ("10000000000", "1" + "0" * 30, "9" * 400)
WRONG = ("-1", "-0.5", "1e-400")


def arguments(here: Box, command: click.Command) -> list[str]:
    """What a command needs beside its options."""
    names = {"reference": "reference.npy", "data": "data.npy", "anomalies": "data.npy",
             "monitor": "new.sparker" if command.name == "calibrate" else "monitor.sparker",
             "batches": "quiet.npy", "result": "result.sparker", "file": "data.npy",
             "stores": "store", "generated": "reference.npy"}  # fmt: skip
    needed = {"--n-reference": "500", "--n-data": "100", "--into": "all"}
    found = [names[one.name or ""] for one in command.params if isinstance(one, click.Argument)]
    for one in command.params:
        if isinstance(one, click.Option) and one.required:
            found += [one.opts[0], needed[one.opts[0]]]
    return found


KERNELS = ["--toys", "9", "--kernels", "2", "--steps", "20"]
OTHER = ["--toys", "19", "--statistic", "mahalanobis"]


def quick(name: str, option: str) -> list[str]:
    """What makes a command quick, beside the option in question."""
    fits = option in ("--kernels", "--clip", "--steps")
    more = {
        "test": KERNELS if fits else OTHER,
        "power": [*(KERNELS if fits else OTHER), "--tests", "1", "--fractions", "0"],
        "calibrate": KERNELS[2:],
        "demo": ["--toys", "1"],
    }.get(name, [])
    pairs = zip(more[::2], more[1::2], strict=True)
    return [word for pair in pairs if pair[0] != option for word in pair]


def numbers(command: click.Command) -> list[str]:
    """Options that take a number."""
    kinds = (click.IntRange, click.FloatRange, click.types.IntParamType, click.types.FloatParamType)
    return [
        one.opts[0]
        for one in command.params
        if isinstance(one, click.Option) and isinstance(one.type, kinds)
    ]


def declare(name: str, command: click.Command, option: str) -> None:
    """For one option of one command."""

    @attack("options", f"{name} {option}: no numbers, and negative ones", "error")
    def no_numbers(here: Box) -> None:
        given = arguments(here, command)
        for value in (*NO_NUMBERS, *WRONG):
            refused(here.inside(name, *given, f"{option}={value}"))

    @attack("options", f"{name} {option}: huge numbers", "error, or a plain answer, within 60 s")
    def huge(here: Box) -> None:
        here.samples()
        for file in ("monitor.sparker", "result.sparker", "quiet.npy"):
            here.copy(file)
        given = arguments(here, command)
        for value in HUGE:
            done = here.inside(name, *given, *quick(name, option), f"{option}={value}", seconds=60)
            either(done)


for _name, _command in main.commands.items():
    for _option in numbers(_command):
        declare(_name, _command, _option)


CONTRADICTIONS = {
    "--statistic and --kernels": ["--statistic", "ks", "--kernels", "3"],
    "--statistic and --steps": ["--statistic", "ks", "--steps", "30"],
    "--only without --store": ["--only", "0:4"],
    "--only and --save": ["--only", "0:4", "--store", "store", "--save", "x.sparker"],
    "--only backwards": ["--only", "4:2", "--store", "store"],
    "--only of nothing": ["--only", "x:y", "--store", "store"],
    "--only beyond the toys": ["--only", "1000:2000", "--store", "store"],
    "--pool without a simulator": ["--pool", "reference.npy"],
    "--null simulator without a pool": ["--null", "simulator"],
    "--group-rows without --groups": ["--group-rows", "3"],
    "--groups and --weights": ["--groups", "0", "--weights", "1"],
    "a column that is not there": ["--columns", "none"],
    "all columns ignored": ["--ignore", "0,1"],
    "a column both taken and ignored": ["--columns", "0", "--ignore", "0"],
    "a column twice": ["--columns", "0,0"],
    "a scheduler that is not there": ["--scheduler", "tcp://127.0.0.1:1"],
    "a scheduler that is no address": ["--scheduler", "nonsense"],
    "a store that is a file": ["--store", "data.npy"],
    "an output that is a folder": ["--save", "."],
    "an output in no folder": ["--save", "none/x.sparker"],
    "weights that are no column": ["--weights", "none"],
    "texts that are no column": ["--text", "none", "--report", "x.html"],
    "a device that is not there": ["--device", "abacus"],
    "a statistic that is none": ["--statistic", "none"],
}


def declare_contradiction(name: str, given: list[str]) -> None:
    """For options of a test."""

    @attack("options", f"test: {name}", "error")
    def contradict(here: Box) -> None:
        here.samples()
        refused(here.inside("test", "reference.npy", "data.npy", "--toys", "19", *given))


for _name, _given in CONTRADICTIONS.items():
    declare_contradiction(_name, _given)


@attack("options", "test: one file for both samples", "warning or error")
def one_file(here: Box) -> None:
    """Surely a mistake."""
    here.samples()
    done = here.inside("test", "data.npy", "data.npy", *READ)
    if plain(done).code != 2:
        check("Warning" in done.err, "nothing is said")


@attack("options", "test: --alpha nan", "error, and never compatible")
def alpha(here: Box) -> None:
    """No range leaves out nan by itself."""
    here.samples()
    refused(here.inside("test", "reference.npy", "data.npy", "--alpha", "nan"), "nan")


@attack(
    "options", "settings of the library that are no numbers, or huge", "ValueError or TypeError"
)
def library(here: Box) -> None:
    """In a process of its own, each within seconds."""
    code = """
import numpy as np, sparker, time, sys
rng = np.random.default_rng(0)
a, b = rng.normal(size=(100, 2)), rng.normal(size=(30, 2))
def same(rng, sample): return 1.0
values = [float("nan"), float("inf"), -1, 0, 1.5, "x", None, 10**30, [], {}]
def trial(make):
    began = time.monotonic()
    try: make()
    except (ValueError, TypeError): pass
    except BaseException as error: print(type(error).__name__, error)
    if time.monotonic() - began > 20: print("slow")
for v in values:
    if v is not None:
        trial(lambda: sparker.test(a, b, n_toys=v, progress=False, statistic=same))
        trial(lambda: sparker.test(a, b, n_toys=9, seed=v, progress=False, statistic=same))
        trial(lambda: sparker.FitConfig(n_kernels=v))
        trial(lambda: sparker.FitConfig(clip=v))
        trial(lambda: sparker.WidthConfig(steps=v))
        trial(lambda: sparker.WidthConfig(n_widths=v))
    trial(lambda: sparker.test(a, b, n_toys=9, chunk=v, progress=False, statistic=same))
"""
    done = plain(here.outside(code=code, seconds=300))
    check(not done.out, done.out[:300])


@attack("options", "1,000 options and an argument of a megabyte", "error")
def many(here: Box) -> None:
    """Nothing of it is repeated at length."""
    here.samples()
    refused(here.inside("test", "reference.npy", "data.npy", *["--columns", "x"] * 500))
    done = refused(here.inside("info", "x" * 2**20))
    check(len(done.err) < 10**5, f"{len(done.err)} characters of an error")
    check(np.isfinite(done.seconds), "")
