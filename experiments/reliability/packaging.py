"""What is installed: the wheel, its files, and what it needs."""

import ast
import importlib.metadata
import itertools
import re
import subprocess
import sys
import tomllib
import zipfile
from functools import cache
from pathlib import Path

from experiments.reliability.attack import attack
from experiments.reliability.box import ROOT, Box, environment, shared
from experiments.reliability.ends import check, plain


@cache
def wheel() -> Path:
    """Built as pip builds it, without the network."""
    folder = shared() / "wheel"
    done = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation",
         "--no-cache-dir", "--disable-pip-version-check", "-w", str(folder), str(ROOT)],
        capture_output=True, text=True, env=environment(),
    )  # fmt: skip
    check(done.returncode == 0, f"no wheel: {done.stderr[-300:]}")
    return next(folder.glob("*.whl"))


@attack("packaging", "the wheel's files", "all of src/sparker, and nothing else")
def contents(here: Box) -> None:
    """Templates and the mark of types included."""
    with zipfile.ZipFile(wheel()) as file:
        names = {name for name in file.namelist() if ".dist-info/" not in name}
    source = {
        str(path.relative_to(ROOT / "src"))
        for path in (ROOT / "src" / "sparker").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    check(names == source, f"differ in {sorted(names ^ source)[:5]}")


def unpacked(here: Box) -> dict[str, str]:
    """The wheel in a folder, and nothing of the repository in the way."""
    with zipfile.ZipFile(wheel()) as file:
        file.extractall(here / "site")
    return {"PYTHONPATH": str(here / "site")}


@attack("packaging", "a report from what the wheel installs", "written")
def report(here: Box) -> None:
    """Templates are found there."""
    here.samples()
    variables = unpacked(here)
    code = "import sparker; print(sparker.__file__)"
    done = plain(here.outside(code=code, variables=variables))
    check(str(here / "site") in done.out, f"imported from {done.out}")
    done = plain(here.outside(
        "test", "reference.npy", "data.npy", "--toys", "19", "--statistic", "mahalanobis",
        "--report", "report.html", variables=variables))  # fmt: skip
    check((here / "report.html").exists(), done.said)


@attack("packaging", "import sparker", "no JAX, no Matplotlib, no network, within a second")
def light(here: Box) -> None:
    """Names are looked up when they are asked for."""
    code = """
import sys, time
began = time.monotonic()
def hook(event, arguments):
    if event.startswith("socket."): raise RuntimeError(event)
sys.addaudithook(hook)
import sparker
print(sorted({"jax", "matplotlib", "sklearn", "bokeh"} & sys.modules.keys()))
"""
    done = plain(here.outside(code=code))
    check(done.out.strip() == "[]", done.out)


@attack("packaging", "every public name", "is there")
def names(here: Box) -> None:
    """Also after import *."""
    code = """
import sparker
for name in sparker.__all__: getattr(sparker, name)
exec("from sparker import *")
try: sparker.no_such_name
except AttributeError as error: print(error)
"""
    done = plain(here.outside(code=code))
    check("no_such_name" in done.out, done.out)


@attack("packaging", "every module", "can be imported by itself")
def modules(here: Box) -> None:
    """No order of imports is needed."""
    code = """
import pkgutil, importlib, subprocess, sys, sparker
for module in pkgutil.walk_packages(sparker.__path__, "sparker."):
    if "__main__" not in module.name:
        importlib.import_module(module.name)
print("all")
"""
    check(plain(here.outside(code=code)).out.strip() == "all", "not all")


@attack("packaging", "sparker --version, and python -m sparker without arguments", "words")
def version(here: Box) -> None:
    """No traceback."""
    plain(here.outside("--version"))
    done = plain(here.outside())
    check("Usage" in done.out + done.err, done.said)


def bare(requirement: str) -> str:
    """The name of a package, without versions and extras."""
    return re.split(r"[^\w.-]", requirement)[0]


@attack("packaging", "what is imported", "is declared in pyproject.toml")
def declared(here: Box) -> None:
    """Or by what one of these always needs itself."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    names = [*project["dependencies"], *itertools.chain.from_iterable(extras)]
    for name in project["dependencies"]:
        needs = importlib.metadata.requires(bare(name)) or []
        names += [one for one in needs if "extra ==" not in one]
    allowed = {bare(name).replace("-", "_").lower() for name in names}
    allowed |= {"PIL", "sklearn", "sparker", *sys.stdlib_module_names}
    foreign = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                foreign |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                foreign |= {node.module.split(".")[0]}
    check(foreign <= allowed, f"{sorted(foreign - allowed)}")


@attack("packaging", "calls that only POSIX has", "guarded")
def posix_only(here: Box) -> None:
    """As far as a search of the source tells: each is asked for before it is used."""
    calls = ("os.fork(", "import fcntl", "import resource", "os.mkfifo(", "signal.SIGKILL",
             "signal.alarm(", "os.sched_getaffinity(", "os.getuid(", "os.geteuid(")  # fmt: skip
    for path in (ROOT / "src").rglob("*.py"):
        text = path.read_text()
        for call in calls:
            if call in text:
                guards = ("hasattr(", "except ImportError", "getattr(", "sys.platform")
                check(any(guard in text for guard in guards), f"{call} in {path.name}")
