"""The documentation as a site: it builds without a warning, nothing is missing, no link is dead."""

import shutil
import subprocess
import sys
import zlib
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import sparker
from sparker.cli.main import main

pytest.importorskip("sphinx_gallery", reason="the site is built where the extra docs is installed")

ROOT = Path(__file__).parent.parent
SOURCES = ("docs", "examples", "experiments", "benchmarks")
NAMESPACES = ("engine", "nulls", "plots", "statistics", "tables")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The whole of it, but the examples are not run, from a copy: pages are written into docs/."""
    folder = tmp_path_factory.mktemp("site")
    for name in SOURCES:
        unwanted = shutil.ignore_patterns("__pycache__", "gallery", "output", "data")
        shutil.copytree(ROOT / name, folder / name, ignore=unwanted)
    for path in (*ROOT.glob("*.md"), ROOT / "LICENSE", ROOT / "CITATION.cff"):
        shutil.copy(path, folder)
    options = ("-q", "-W", "--keep-going", "-D", "plot_gallery=0", "-c", "docs")
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, ".", "site"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return folder / "site"


class Page(HTMLParser):
    """Where a page points to, and where it can be pointed to."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors = [], {""}
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        own = dict(attrs)
        self.anchors |= {own[name] for name in ("id", "name") if own.get(name)}
        self.links += [own[name] for name in ("href", "src") if own.get(name)]


def test_no_link_inside_the_site_is_dead(site):
    paths = [path for path in site.rglob("*.html") if "_static" not in path.parts]
    pages = {path: Page(path) for path in paths}
    assert len(pages) > 40
    dead = []
    for path, page in pages.items():
        for link in page.links:
            where = urlsplit(link)
            if where.scheme or where.netloc:
                continue
            target = (path.parent / unquote(where.path)).resolve() if where.path else path
            at_anchor = target not in pages or unquote(where.fragment) in pages[target].anchors
            # Reports are there when the examples have been run.
            if not (target.exists() and at_anchor) and not link.endswith("_report.html"):
                dead.append(f"{path.relative_to(site)}: {link}")
    assert not dead


def test_every_public_name_is_explained(site):
    *_, packed = (site / "objects.inv").read_bytes().split(b"\n", 4)  # after four lines of header
    known = {line.split(" ")[0] for line in zlib.decompress(packed).decode().splitlines()}
    spaces = {"sparker": sparker.__all__}
    spaces |= {f"sparker.{name}": getattr(sparker, name).__all__ for name in NAMESPACES}

    def explained(space, name):  # where it is offered, or where it lives
        return any(one.startswith(f"{space}.") and one.endswith(f".{name}") for one in known)

    assert not [
        f"{space}.{name}"
        for space, names in spaces.items()
        for name in names
        if not explained(space, name)
    ]


def test_every_option_of_every_command_is_explained(site):
    page = (site / "docs" / "reference" / "command_line.html").read_text().lower()
    for command in main.commands.values():
        assert f"cmdoption-sparker-{command.name}-" in page
        for option in command.params:
            assert max(option.opts, key=len) in page


def test_every_example_is_a_page_and_every_page_can_be_searched(site):
    for script in (ROOT / "examples").glob("[!_]*.py"):
        assert (site / "docs" / "gallery" / f"{script.stem}.html").exists()
    assert '"docs/calibration"' in (site / "searchindex.js").read_text()
