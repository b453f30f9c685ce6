"""What all pages share: templates in which everything is escaped, and files written whole."""

import os
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from sparker.report.words import number
from sparker.system.atomic import whole_file


def environment(**filters: Any) -> Environment:
    """Jinja for our templates."""
    made = Environment(
        loader=PackageLoader("sparker.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"number": number, **filters}
    # Not sorted, which is the default: Bokeh's objects are defined where they first appear.
    made.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "ensure_ascii": False}
    return made


def source(made: Environment, name: str) -> str:
    """A file beside the templates, as it is."""
    assert made.loader is not None
    return made.loader.get_source(made, name)[0]


def plain_page(template: str, outcome: Any, **values: Any) -> str:
    """A page about an outcome, which knows when and by what it was made; it runs no script."""
    made = environment()
    page = made.get_template(template).render(
        made=outcome.made[:16].replace("T", " "),
        version=outcome.versions["sparker"],
        style=Markup(source(made, "report.css")),
        **values,
    )
    return as_text(page)


def as_text(page: str) -> str:
    """Half a surrogate pair, from a name of a file, is no text."""
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
