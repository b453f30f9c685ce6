"""Packages that come with one of sparker's extras, imported only where they are needed."""

import importlib
from typing import Any


def need(doing: str, module: str, extra: str) -> Any:
    """A module by its name, or an error that says what to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{doing} needs {module.split('.')[0]}, which is not installed; "
            f'pip install "sparker[{extra}]"'
        ) from error
