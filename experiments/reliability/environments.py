"""Threads, forks, and machines that lack something."""

import os

import numpy as np
from experiments.reliability.attack import attack
from experiments.reliability.box import QUICK, Box, environment
from experiments.reliability.ends import Done, check, p_value, plain, refused
from experiments.reliability.faults import keep_from_writing
from experiments.reliability.files import to_h5, to_parquet, to_root

TEST = ["test", "reference.npy", "data.npy", *QUICK]

LIBRARY = """
import sys, threading, multiprocessing, os, warnings
import numpy as np, sparker
def one(seed):
    rng = np.random.default_rng(seed)
    return sparker.test(rng.normal(size=(200, 2)), rng.normal(size=(60, 2)), n_toys=19, seed=seed,
        config=sparker.FitConfig(n_kernels=2), widths=sparker.WidthConfig(steps=20, n_widths=3),
        chunk=8, explain=False, progress=False).p_value
"""


def true(here: Box) -> float:
    """The p-value of the samples, in a process that lacks nothing."""
    return p_value(here.inside(*TEST))


def same(here: Box, done: Done) -> None:
    """The same p-value as elsewhere."""
    found, expected = p_value(done), true(here)
    check(found == expected, f"p = {found} in place of {expected}")


@attack("environments", "four tests at once, in threads", "what each gives alone")
def threads(here: Box) -> None:
    """The library."""
    code = (
        LIBRARY
        + """
found = {}
threads = [threading.Thread(target=lambda s=s: found.update({s: one(s)})) for s in range(4)]
for t in threads: t.start()
for t in threads: t.join()
print(all(found[s] == one(s) for s in range(4)))
"""
    )
    done = plain(here.outside(code=code))
    check(done.out.strip() == "True", done.out + done.said)


@attack("environments", "a fork after a test", "an error at once, in the child")
def fork(here: Box) -> None:
    """JAX's threads do not come along."""
    code = (
        LIBRARY
        + """
one(0)
warnings.simplefilter("ignore")
def child():
    try: one(1)
    except RuntimeError as error: print(error, flush=True)
process = multiprocessing.get_context("fork").Process(target=child)
process.start(); process.join(20)
if process.is_alive(): process.kill(); print("it hangs")
"""
    )
    done = plain(here.outside(code=code))
    check("forked from one in which sparker had computed" in done.out, done.out)


@attack("environments", "a fork before any test", "an answer")
def early_fork(here: Box) -> None:
    """After the import."""
    code = (
        LIBRARY
        + """
warnings.simplefilter("ignore")
process = multiprocessing.get_context("fork").Process(target=lambda: print(one(0), flush=True))
process.start(); process.join(60)
print(one(0))
"""
    )
    done = plain(here.outside(code=code))
    first, second = done.out.split()
    check(first == second, done.out)


@attack("environments", "processes that are spawned", "the same p-value in each")
def spawn(here: Box) -> None:
    """As a pool does it."""
    (here / "spawned.py").write_text(
        LIBRARY
        + """
if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        print(len(set(pool.map(one, [3, 3]))))
"""
    )
    code = "import runpy; runpy.run_path('spawned.py', run_name='__main__')"
    done = plain(here.outside(code=code))
    check(done.out.strip() == "1", done.out + done.said)


@attack("environments", "JAX_PLATFORMS=cuda without a GPU, and nonsense", "error with what to do")
def platforms(here: Box) -> None:
    """For tests and for the demo."""
    here.samples()
    for platform in ("cuda", "tpu", "nonsense"):
        variables = {"JAX_PLATFORMS": platform}
        refused(here.outside(*TEST, variables=variables), "JAX_PLATFORMS")
    refused(here.outside("demo", "--toys", "1", variables={"JAX_PLATFORMS": "cuda"}), "unset it")
    refused(here.outside(*TEST, "--device", "gpu"), "gpu")


@attack("environments", "a home that may only be read", "the same p-value, said once")
def read_only_home(here: Box) -> None:
    """Neither compiled programs nor Matplotlib's fonts can be kept."""
    here.samples()
    expected = true(here)
    (here / "home").mkdir()
    how = keep_from_writing(here, "home")
    variables = {"HOME": str(here / "home"), "SPARKER_CACHE": "", "XDG_CACHE_HOME": ""}
    done = here.outside(*TEST, variables=variables, **how)
    check(p_value(done) == expected, "another p-value")
    check(done.err.count("cannot be kept") <= 1, done.said)


@attack("environments", "no home, no folder for temporary files", "the same p-value")
def nowhere(here: Box) -> None:
    """Neither exists."""
    here.samples()
    variables = {"HOME": "/nowhere", "TMPDIR": "/nowhere", "SPARKER_CACHE": "/nowhere/cache"}
    same(here, here.outside(*TEST, variables=variables))


@attack("environments", "a working folder that was removed", "error or answer")
def no_folder(here: Box) -> None:
    """While a shell is in it."""
    here.samples()
    code = """
import os, sys
os.mkdir("gone"); os.chdir("gone"); os.rmdir("../gone")
from sparker.cli.main import main
main(sys.argv[1:])
"""
    plain(here.outside("info", here / "data.npy", code=code))
    done = here.outside("test", here / "reference.npy", here / "data.npy", *QUICK, code=code)
    plain(done)


@attack("environments", "a terminal of ASCII, 10 columns, without colours", "an answer")
def poor_terminal(here: Box) -> None:
    """No character costs the answer."""
    here.samples()
    command = [word for word in TEST if word != "--json"]
    variables = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "COLUMNS": "10", "TERM": "dumb"}
    done = plain(here.outside(*command, variables=variables))
    check(done.code == 0 and "p-value" in done.out, done.said)


@attack("environments", "Python without assertions and docstrings (-OO)", "the same p-value")
def optimised(here: Box) -> None:
    """Nothing may rest on an assertion."""
    here.samples()
    same(here, here.outside(*TEST, python=["-OO"]))


@attack("environments", "warnings that are errors", "the same p-value")
def strict_warnings(here: Box) -> None:
    """-W error, for what is ours."""
    here.samples()
    same(here, here.outside(*TEST, python=["-W", "error:::sparker"]))


@attack("environments", "stdin, stdout and stderr closed", "no crash, the result is saved")
def closed(here: Box) -> None:
    """As some services start programs."""
    here.samples()

    def close() -> None:
        for number in (0, 1, 2):
            os.close(number)

    done = here.outside(*TEST, "--save", "result.sparker", preexec_fn=close)
    check(done.code is not None and 0 <= done.code < 3, f"exit code {done.code}")
    check((here / "result.sparker").exists(), "the result was lost")


@attack("environments", "extras that are not installed", "error with the pip command")
def no_extras(here: Box) -> None:
    """Of HDF5, Parquet and ROOT, and of Dask."""
    (here / "sitecustomize.py").write_text("""
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("h5py", "pyarrow", "uproot", "awkward", "distributed"):
            raise ImportError(f"No module named {name!r}")
sys.meta_path.insert(0, Block())
""")
    both = os.pathsep.join([str(here.folder), environment()["PYTHONPATH"]])
    for name, write in (("x.h5", to_h5), ("x.parquet", to_parquet), ("x.root", to_root)):
        write(here / name)
        refused(here.outside("info", name, variables={"PYTHONPATH": both}), "pip install")


@attack("environments", "two tests at once in two processes with one cache", "the same p-value")
def one_cache(here: Box) -> None:
    """Compiled programs are written whole."""
    here.samples()
    variables = {"SPARKER_CACHE": str(here / "cache")}
    processes = [here.begin(*TEST, variables=variables) for _ in range(2)]
    for process in processes:
        same(here, here.ended(process))


@attack("environments", "a cache of compiled programs that is damaged", "the same p-value")
def damaged_cache(here: Box) -> None:
    """Bytes of every program are flipped."""
    here.samples()
    variables = {"SPARKER_CACHE": str(here / "cache")}
    same(here, here.outside(*TEST, variables=variables))
    rng = np.random.default_rng(0)
    for path in (here / "cache").rglob("*"):
        if path.is_file():
            content = bytearray(path.read_bytes())
            for place in rng.integers(max(len(content), 1), size=5 * bool(content)):
                content[place] ^= 255
            path.write_bytes(content)
    same(here, here.outside(*TEST, variables=variables))
