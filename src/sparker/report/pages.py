"""What all pages share: templates in which everything is escaped, and files written whole."""

import os
from collections.abc import Mapping
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from sparker.report.numbers import number
from sparker.system.atomic import whole_file


def cell(value: Any, column: Mapping[str, Any]) -> str:
    """A cell of the table as it is shown."""
    if value is None:
        return ""
    return f"{value:.{column['digits']}f}" if "digits" in column else str(value)


LOADER = PackageLoader("sparker.report")
TEMPLATES = Environment(
    loader=LOADER,
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.filters |= {"number": number, "cell": cell}
# Not sorted, which is the default: Bokeh's objects are defined where they first appear.
TEMPLATES.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "ensure_ascii": False}


def source(name: str) -> str:
    """A file beside the templates, as it is."""
    return LOADER.get_source(TEMPLATES, name)[0]


def page_of(template: str, outcome: Any, **values: Any) -> str:
    """Return a page about an outcome, with when and by which version it was made."""
    page = TEMPLATES.get_template(template).render(
        made=outcome.made[:16].replace("T", " "),
        version=outcome.versions["sparker"],
        style=Markup(source("report.css")),
        **values,
    )
    # Half a surrogate pair, from a name of a file, is no text.
    return page.encode(errors="replace").decode()


def write_page(path: str | os.PathLike[str], page: str) -> None:
    """Write a page to a file, whole or not at all."""
    try:
        with whole_file(path) as file:
            file.write(page.encode())
    except OSError as error:
        raise ValueError(
            f"the report could not be written to {path}: {error.strerror}; choose a file in a "
            "folder that exists and that you may write to"
        ) from error
