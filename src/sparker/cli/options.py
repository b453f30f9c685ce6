"""What several commands share: options, and reading the two files."""

import math
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from sparker import together
from sparker.calibration.combine import RULES
from sparker.cli.errors import plain
from sparker.cli.terminal import BadInput, note
from sparker.system.cache_folder import is_off, root

if TYPE_CHECKING:
    from sparker import tables

Command = TypeVar("Command", bound=Callable[..., Any])

preset = partial(click.option, show_default=True)
"""An option with a default, which its help says."""


def comma_lists(
    ctx: click.Context, parameter: click.Parameter, value: tuple[str, ...]
) -> list[str]:
    """A click callback: names separated by commas, of all times that an option is given.

    Nothing is the name of a column without one.
    """
    return [name.strip() for given in value for name in given.split(",")]


def names_option(
    name: str, help: str, default: tuple[str, ...] = ()
) -> Callable[[Command], Command]:
    """An option of names separated by commas, which add up where it is given several times."""
    make = preset if default else click.option
    return make(name, multiple=True, callback=comma_lists, default=default, help=help)


def refuse_repeats(command: click.Command, arguments: list[str], parent: click.Context) -> None:
    """Refuse a second value for an option that takes one: the first would be lost."""
    context = click.Context(command, parent, info_name=command.name)
    try:
        _, _, given = command.make_parser(context).parse_args([*arguments])
    except click.UsageError:  # which is said when the command begins
        return
    for one in given:
        if isinstance(one, click.Option) and not (one.multiple or one.count or one.is_flag):
            n = given.count(one)
            if n > 1:
                raise click.UsageError(
                    f"{one.opts[0]} is given {n} times, and takes one value; give it once", context
                )


def options(*decorators: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Several options as one decorator, in the order given."""

    def decorate(command: Command) -> Command:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


class Real(click.FloatRange):
    """A number that is one: no range leaves out nan by itself."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse others."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is no finite number.", param, ctx)
        return number


FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)
A_SEED = click.IntRange(0, 2**32 - 1)
A_LEVEL = Real(0, 1, min_open=True, max_open=True)

column_options = options(
    names_option("--columns", help="The features, separated by commas; all if not."),
    names_option("--ignore", help="Columns that are no features, separated by commas."),
    click.option("--key", help="Which dataset, array or tree, where a file has several."),
)

table_options = options(
    names_option("--keep",
                 help="Columns that look like identifiers, to be compared all the same."),
    preset("--missing", default="indicator", type=click.Choice(["indicator", "drop", "error"]),
           help="Where values are missing: the median and a feature that says so, leave out the "
                "row, or refuse it."),
    click.option("--strict", is_flag=True,
                 help="Refuse what looks suspicious instead of warning of it."),
)  # fmt: skip

embed_option = click.option(
    "--embed",
    help="What makes numbers of --text or --images, to compare them: tfidf, minilm, wordllama, "
         "efficientnet-lite0, st:NAME, timm:NAME, or module:function of your own.",
)  # fmt: skip


def toys_option(default: int) -> Callable[[Command], Command]:
    """The number of toys."""
    said = "Number of toys N; the smallest possible p-value is 1/(N+1)."
    return preset("--toys", default=default, type=click.IntRange(1), help=said)


fit_options = options(
    toys_option(300),
    preset("--seed", default=0, type=A_SEED, help="The same seed gives the same p-value."),
    preset("--kernels", default=5, type=click.IntRange(1)),
    preset("--clip", default=5.0, type=Real(0, min_open=True),
           help="Largest log density ratio a kernel may claim."),
    click.option("--steps", type=click.IntRange(10),
                 help="Training steps, 200 or, where widths are annealed, 1000 if not given."),
    preset("--preprocess", default="decorrelate",
           type=click.Choice(["decorrelate", "standardise", "whiten", "unchanged"])),
    preset("--combine", default="harmonic", type=click.Choice([rule.__name__ for rule in RULES]),
           help="How component tests become one test; the paper's is minimum_and_product."),
    click.option("--device", help="cpu, gpu or tpu; the fastest there is if not given."),
)  # fmt: skip


annealed_option = click.option(
    "--annealed", is_flag=True,
    help="Let kernels follow an annealed width, closer to the paper, instead of looking everywhere "
         "at each width before training. Toys that are not permutations always do.",
)  # fmt: skip


store_option = click.option(
    "--store",
    type=FOLDER,
    help="Folder that keeps finished toys; the same command continues there.",
)

OWN_STATISTIC = "sparker"


class StatisticName(click.ParamType):  # type: ignore[type-arg]
    """A statistic by its name; all of them are imported only when a name is looked up."""

    name = "statistic"

    def names(self) -> list[str]:
        """Those there are."""
        from sparker.statistics.choose import named

        return [OWN_STATISTIC, *named()]

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """For the help of a command."""
        return f"[{'|'.join(self.names())}]"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Refuse others."""
        if value != OWN_STATISTIC and value not in self.names():
            self.fail(f"{value!r} is not one of {', '.join(self.names())}.", param, ctx)
        return value


statistic_option = preset(
    "--statistic", default=OWN_STATISTIC, type=StatisticName(),
    help="Another test than SparKer's, calibrated in the same way; see docs/baselines.md.",
)  # fmt: skip

FEATURES = {
    "scheduler": "cluster", "only": "some toys", "steps": "widths",
    "as_json": "json", "systematic": "systematics",
}  # fmt: skip
"""Options whose features have another name in ``sparker.together``."""


def check_together(*more: str) -> None:
    """Refuse options that do not go together, before any file is read."""
    given = {*more}
    context = click.get_current_context()
    for name, value in context.params.items():
        feature = FEATURES.get(name, name)
        if feature in together.FEATURES and name != "null" and _was_given(name, value):
            given |= {feature}
    if context.params.get("null") == "simulator":
        given |= {"simulator", "simulator by name"}
    if "normalisation" in given:
        given |= {"systematics"}
    if "embed" in given:  # then they are compared, and not only shown
        given -= {"text", "images"}
        given |= {"learning embedder"} if context.params["embed"] == "tfidf" else set()
    together.check(given, as_options=True)


def is_default(name: str) -> bool:
    """Return whether an option of the command was left out."""
    source = click.get_current_context().get_parameter_source(name)
    return source in (None, ParameterSource.DEFAULT)


def _was_given(name: str, value: Any) -> bool:
    own = name == "statistic" and value == OWN_STATISTIC  # not another one
    return not is_default(name) and not own and value not in (None, False, [])


def keep_programs() -> None:
    """Keep compiled programs in the user's cache folder, unless JAX was given one."""
    import jax

    from sparker.system.compile_cache import enable_compilation_cache

    if is_off() or jax.config.values["jax_compilation_cache_dir"] is not None:
        return
    try:
        enable_compilation_cache(root() / "compiled")
    except OSError as error:
        note(f"Compiled programs are not kept for the next time: {plain(error)}.")


def fit_settings(options: dict[str, Any], *, anneal: bool) -> dict[str, Any]:
    """Take ``fit_options`` and the statistic out of a command's options, as the library knows them.

    The device is chosen here, before anything runs on one, and where programs are kept.
    """
    import jax

    from sparker.calibration.settings import option
    from sparker.engine.config import FitConfig
    from sparker.engine.widths import WidthConfig
    from sparker.presets import annealed
    from sparker.statistics.choose import named

    keep_programs()
    device = options.pop("device")
    if device is not None:
        platform, before = {"gpu": "cuda"}.get(device, device), jax.config.values["jax_platforms"]
        jax.config.update("jax_platforms", platform)  # type: ignore[no-untyped-call]
        try:
            jax.devices(platform)
        except Exception as error:  # whatever JAX stumbles over
            jax.config.update("jax_platforms", before)  # type: ignore[no-untyped-call]
            reason = (str(error).splitlines() or ["it finds none"])[0]
            raise BadInput(
                f"there is no device {device!r} here, or JAX was installed without it: {reason}"
            ) from error
    preset: dict[str, Any] = {"config": FitConfig(), "widths": WidthConfig()}
    if anneal:
        preset = annealed()
    steps = options.pop("steps")
    kernels = {"n_kernels": options.pop("kernels"), "clip": options.pop("clip")}
    statistic = options.pop("statistic", OWN_STATISTIC)
    ranked: dict[str, Any]
    if statistic == OWN_STATISTIC:
        ranked = {
            "config": replace(preset["config"], **kernels),
            "widths": replace(preset["widths"], steps=steps) if steps else preset["widths"],
        }
    else:
        ranked = {"statistic": named()[statistic]()}
    return {
        **ranked,
        "n_toys": options.pop("toys"),
        "seed": options.pop("seed"),
        "preprocess": option("preprocess", options.pop("preprocess")),
        "combine": option("combine", options.pop("combine")),
    }


def table_settings(options: dict[str, Any], table: "tables.Table") -> dict[str, Any]:
    """What ``table_options`` ask for; columns that were named are meant as they are."""
    meant = [*table.columns, *map(str, range(table.points.shape[1] * (not table.columns)))]
    return {
        "keep": meant if options["columns"] else options["keep"],
        "missing": options["missing"],
        "strict": options["strict"],
    }


def embed_settings(options: dict[str, Any]) -> dict[str, Any]:
    """What ``embed_option`` asks for: without it, texts and pictures are shown only."""
    if not options["embed"]:
        return {}
    return {name: options[name] for name in ("text", "images", "embed")}


def read_table(
    path: str,
    options: dict[str, Any],
    extra: Sequence[str] = (),
    columns: Sequence[str] | None = None,
) -> "tables.Table":
    """A file with these columns, or those that the options ask for; or a folder of pictures."""
    from sparker import tables
    from sparker.tables.picture_files import as_rows

    if options.get("embed") and Path(path).is_dir():
        return as_rows(path)
    ignore = [] if columns else options["ignore"]
    columns = columns or _asked(options) or None
    return tables.read(path, columns=columns, ignore=ignore, extra=extra, key=options["key"])


def _asked(options: dict[str, Any]) -> list[str]:
    """The columns that were asked for, and that of the texts or pictures to compare."""
    columns: list[str] = options["columns"]
    own = [options[name] for name in ("text", "images") if options.get("embed") and options[name]]
    return columns and [*columns, *(name for name in own if name not in columns)]


def read_two(
    reference: str,
    data: str,
    options: dict[str, Any],
    reference_extra: Sequence[str] = (),
    data_extra: Sequence[str] = (),
) -> "tuple[tables.Table, tables.Table]":
    """Both files, with the same features in the same order."""
    first = read_table(reference, options, reference_extra)
    return first, read_beside(first, data, options, reference, data_extra)


def read_beside(
    first: "tables.Table",
    data: str,
    options: dict[str, Any],
    reference: str,
    extra: Sequence[str] = (),
) -> "tables.Table":
    """A file with the features of a reference that was read from another one."""
    from sparker import tables

    try:  # by name, so that further columns of the data, or another order of them, do no harm
        return read_table(data, options, extra, first.columns or _asked(options))
    except tables.FileError as error:
        if first.columns and not options["columns"]:
            raise BadInput(
                f"{error} The features are those of {reference}: {', '.join(first.columns[:12])}"
                f"{', ...' if len(first.columns) > 12 else ''}; --columns or --ignore choose others"
            ) from error
        raise


def command_line() -> str:
    """What was typed, to be repeated."""
    return shlex.join(["sparker", *sys.argv[1:]])
