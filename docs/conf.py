"""How the site is built: ``make docs``, or ``sphinx-build -W -c docs . build/site``.

The source is the whole repository, so that a link between two Markdown files works here as it does
wherever the repository is looked at, and a link to a script or a JSON file is a download.
"""

import os
import re
import shutil
import sys
import warnings
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

import sparker
from sparker.tables.errors import DataWarning

project = "sparker"
author = "The sparker developers"
copyright = "the sparker developers, MIT licence"
release = version = sparker.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_click",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
root_doc = "docs/index"
include_patterns = ["*.md", "docs/**", "experiments/**", "benchmarks/**"]
exclude_patterns = [".*", "build", "src", "tests", "examples", "docs/gallery/**/*.ipynb"]

# Markdown. Anchors of headings are those that other viewers give them.
myst_heading_anchors = 4
myst_links_external_new_tab = True
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True

# The reference, from docstrings in Google's style.
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # an ArrayLike would fill the page; docstrings say what goes in
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False
python_maximum_signature_line_length = 88
python_use_unqualified_type_names = True

# The gallery: the scripts of examples/ are run, and their pictures and words become pages. Of one
# that needs packages (examples/requirements/NAME.txt) which are not installed, the code is shown.
sys.path.append(str(Path(__file__).resolve().parent.parent / "examples"))
from _recipe import runnable  # noqa: E402

os.environ.setdefault("MPLBACKEND", "agg")
warnings.simplefilter("ignore", DataWarning)
sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "docs/gallery",
    "filename_pattern": rf"/({'|'.join(runnable())})\.py$",
    "ignore_pattern": r"^_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 1,
}

linkcheck_ignore = [r".*_report\.html"]  # which the examples write

LISTS = ("tutorials/index", "howto/index", "explanation", "reference/index", "index")


def take_up_the_rest(app: Sphinx, page: str, source: list[str]) -> None:
    """Add to the how-to pages those of docs/ that no list of pages names."""
    if page == "docs/howto/index":
        docs = Path(app.srcdir) / "docs"
        lists = "".join((docs / f"{name}.md").read_text() for name in LISTS)
        named = {line.split("/")[-1] for line in lists.splitlines()}
        rest = sorted(path.stem for path in docs.glob("*.md") if path.stem not in {*named, "index"})
        listed = "".join(f"../{name}\n" for name in rest)
        source[0] += f"\n```{{toctree}}\n:maxdepth: 1\n\n{listed}```\n" if rest else ""


def copy_reports(app: Sphinx, error: Exception | None) -> None:
    """Put the reports that examples wrote beside their pages."""
    for report in (Path(app.srcdir) / "examples" / "output").glob("*_report.html"):
        shutil.copy(report, Path(app.outdir) / "docs" / "gallery")


def name_functions(*event: Any) -> tuple[str, str] | None:
    """Write a default that is a function by its name."""
    *_, signature, returned = event
    if signature is None:
        return None
    return re.sub(r"<function (\w+)( at \w+)?>", r"\1", signature), returned


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-process-signature", name_functions)
    app.connect("source-read", take_up_the_rest)
    app.connect("build-finished", copy_reports)


html_theme = "pydata_sphinx_theme"
html_title = "sparker"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["_root"]  # leads to the first page
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_prev_next": True,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "pygments_light_style": "default",
    "pygments_dark_style": "github-dark",
}
html_context = {"default_mode": "auto"}
