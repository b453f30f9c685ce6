"""``sparker test``: two files in, a decision out."""

import math
import sys
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from sparker.cli.many import Files, Reports, are_many, check_places, sample_files, say
from sparker.cli.options import (
    A_LEVEL,
    FILE,
    FOLDER,
    Real,
    annealed_option,
    check_together,
    column_options,
    command_line,
    embed_option,
    embed_settings,
    fit_options,
    fit_settings,
    is_default,
    names_option,
    preset,
    read_beside,
    read_table,
    read_two,
    statistic_option,
    store_option,
    table_options,
    table_settings,
)
from sparker.cli.outputs import Attempts, check_outputs
from sparker.cli.pictures import (
    compared_pictures,
    of_rows,
    picture_column,
    picture_files,
    picture_folder,
)
from sparker.cli.share import check_share, cluster_at, share_options
from sparker.cli.speak import speak, to_json, write_rows
from sparker.cli.systematics import (
    columns_of,
    files_of,
    fixed_at,
    systematic_options,
    systematics,
)
from sparker.cli.terminal import BadInput, answer, answer_json, reader_may_leave

if TYPE_CHECKING:
    import numpy as np

    from sparker.tables import Table


@click.command()
@click.argument("reference")
@click.argument("data", nargs=-1, required=True)
@column_options
@table_options
@click.option(
    "--weights", help="Column of REFERENCE, and of --pool, with the weights of their rows."
)
@click.option(
    "--data-weights",
    help="Column of DATA with the weights its rows would have in REFERENCE; then no row is lost.",
)
@click.option(
    "--expected", type=Real(max=1e15), help="Expected number of data rows, to test it as well."
)
@systematic_options
@click.option("--groups", help="Column of both files; rows of a group are relabelled together.")
@click.option(
    "--group-rows",
    type=click.IntRange(1),
    help="Subsample larger groups to this many rows, so that groups of different size are "
    "exchangeable.",
)
@click.option("--strata", help="Column of both files; labels are exchanged within strata only.")
@preset(
    "--null",
    default="permutation",
    type=click.Choice(["permutation", "simulator"]),
    help="How toys are made.",
)
@click.option("--pool", help="File of further anomaly-free rows, for --null simulator.")
@click.option(
    "--pool-unweighted",
    is_flag=True,
    help="Use the rows of --pool without weights, although REFERENCE has --weights.",
)
@click.option("--stop", is_flag=True, help="Stop early where the p-value is clearly large.")
@statistic_option
@annealed_option
@fit_options
@store_option
@share_options
@click.option(
    "--alpha",
    type=A_LEVEL,
    help="Level of the decision (default: 0.05); given, exit code 1 if p <= alpha.",
)
@click.option(
    "--fdr",
    type=A_LEVEL,
    help="False discovery rate of the list of several DATA (default: 0.1); given, exit code 1 if "
    "any is listed.",
)
@click.option(
    "--no-explain", is_flag=True, help="Leave out how many, where, which rows and which columns."
)
@click.option("--tail", is_flag=True, help="Extrapolate the p-value beyond 1/(N+1).")
@click.option("--text", help="Column of DATA with a text for each row, to show; or --embed it.")
@click.option(
    "--images",
    help="Column of DATA with picture files, or a folder of one a row, to show; or --embed it.",
)
@embed_option
@names_option(
    "--observables",
    help="Columns of numbers to show in the report that are not part of the test.",
)
@click.option("--report", type=FILE, help="Write a report, an HTML file.")
@click.option(
    "--reports",
    type=FOLDER,
    help="Folder for a report of each of several DATA with p <= FDR.",
)
@click.option("--rows", type=FILE, help="Write a CSV file of the data rows, with flags.")
@click.option("--save", type=FILE, help="Write the whole result, for `sparker report`.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def test(reference: str, data: tuple[str, ...], **options: Any) -> None:  # fmt: skip
    """Do the rows of DATA come from the same distribution as those of REFERENCE?

    All are tables (.csv, .tsv, .npy, .npz, .parquet, .h5, .root, .jsonl) with the same columns, or,
    with --embed, two folders of pictures.
    Prints the decision, where the two differ, and which rows. Exit codes: 0 no significant
    difference or no --alpha, 1 significant difference at --alpha, 2 bad input, an --alpha that no
    p-value can reach, or an output that could not be written, 3 internal error, 130 interrupted,
    143 terminated.

    Several DATA, or a folder of them, are tested one by one and ranked; with --fdr, exit code 1
    means that some are listed.

    Example: sparker test reference.csv data.csv --alpha 0.01 --report report.html
    """
    if are_many(data, embedded=options["embed"] is not None):
        _test_many(reference, data, options)
    else:
        _test_one(reference, data[0], options)


def _test_one(reference: str, data: str, options: dict[str, Any]) -> None:
    from sparker import detect
    from sparker.calibration.sequential import Sequential
    from sparker.findings.decision import TOO_FEW_TOYS
    from sparker.findings.text import remedy

    check_together()
    settings = fit_settings(options, anneal=options.pop("annealed"))
    check_share(options["only"], settings["n_toys"])
    outputs = {f"--{name}": options[name] for name in ("report", "rows", "save")}
    read = [reference, data, options["pool"], *files_of(options["systematic"])]
    check_outputs(outputs, [*read, *picture_folder(options["images"])])
    _check_reach(options["alpha"], settings["n_toys"])
    shown_text, shown_images = (options[name] for name in ("text", "images"))
    if options["embed"]:  # texts and pictures that are compared travel into the report themselves
        shown_text = shown_images = None
    pictures = picture_column(shown_images, data, options["key"])
    shown = [name for name in (shown_text, pictures) if name]
    both = [*_given(options, "groups", "strata"), *options["observables"]]
    weights, data_weights = _given(options, "weights"), _given(options, "data_weights")
    first, second = read_two(
        reference,
        data,
        options,
        list(dict.fromkeys([*both, *weights, *columns_of(options["systematic"])])),
        [*both, *data_weights, *shown],
    )
    all_weights: Any = first.extra[weights[0]] if weights else None
    if data_weights:
        all_weights = all_weights, second.extra[data_weights[0]]
    images = picture_files(shown_images, pictures, data, second)
    check_outputs(outputs, images or compared_pictures(options["images"], first, second))
    observables = [_observables(options["observables"], table) for table in (second, first)]
    settings |= table_settings(options, second) | embed_settings(options)
    settings |= {
        "null": _null(options, first),
        "reference_weights": all_weights,
        "expected": options["expected"],
        "systematics": systematics(options["systematic"], first, options["key"]),
        "normalisation": options["normalisation"],
        "at": fixed_at(options["at"]),
        "groups": _of_both(options["groups"], first, second),
        "strata": _of_both(options["strata"], first, second),
        "store": options["store"],
        "alpha": options["alpha"],
        "explain": not options["no_explain"],
    }
    with cluster_at(options["scheduler"]) as cluster:
        if options["only"]:
            detect.run_toys(first, second, only=options["only"], cluster=cluster, **settings)
            made = f"experiments {options['only'][0]} to {options['only'][-1]}"
            answer(f"{made} of 0 to {settings['n_toys']} are made and kept in {options['store']}")
            return
        stop = Sequential() if options["stop"] else None
        found = detect.test(first, second, stop=stop, cluster=cluster, **settings)
    result = replace(found, files=(reference, data))
    second, images = of_rows(found.data_rows, second, images)
    if found.data_rows is not None:
        observables = [_observables(options["observables"], second), None]
    texts = second.extra[shown_text].tolist() if shown_text else found.texts
    attempts = Attempts()
    decision = result.decision
    if decision.given and decision.outcome == TOO_FEW_TOYS:
        attempts.failed(f"--alpha {decision.alpha:g} is out of reach: {remedy(result)}")
    with attempts.at("answer"), reader_may_leave():
        if options["as_json"]:
            answer_json(to_json(result, texts, tail=options["tail"]), indent=1)
        else:
            speak(result, texts, tail=options["tail"])
    attempts.write("rows", options["rows"], partial(write_rows, result=result))
    attempts.write("result", options["save"], result.save)
    write = partial(
        result.report,
        texts=texts,
        images=images,
        observables=observables[0],
        reference_observables=observables[1],
        command=command_line(),
    )
    attempts.write("report", options["report"], write)
    attempts.end()
    if decision.given and result.is_significant:
        sys.exit(1)


def _test_many(reference: str, data: tuple[str, ...], options: dict[str, Any]) -> None:
    from sparker.many import test_many

    check_together("many")
    settings = fit_settings(options, anneal=options.pop("annealed"))
    outputs = {"--report": options["report"]}
    check_outputs(outputs, [reference, *data, options["pool"]],
                  folders={"--reports": options["reports"]})  # fmt: skip
    report = options["report"]
    check_places(data, {"--reports": options["reports"], "--report": report and report.parent})
    files = sample_files(data, [reference, options["pool"]])
    both, weights = _given(options, "groups", "strata"), _given(options, "weights")
    first = read_table(reference, options, [*both, *weights])
    reports = Reports(options["reports"], reference)
    settings |= table_settings(options, first)
    settings |= {
        "null": _null(options, first),
        "reference_weights": first.extra[weights[0]] if weights else None,
        "expected": options["expected"],
        "groups": options["groups"],
        "strata": options["strata"],
        "store": options["store"],
        "explain": not options["no_explain"],
    }
    if is_default("toys"):
        del settings["n_toys"]
    read = partial(read_beside, first, options=options, reference=reference, extra=both)
    with cluster_at(options["scheduler"]) as cluster:
        found = test_many(
            first,
            Files(files, read),
            fdr=options["fdr"] or 0.1,
            on_result=reports,
            cluster=cluster,
            **settings,
        )
    say(replace(found, files=(reference,)), options, reports)


def _observables(names: list[str], table: "Table") -> "dict[str, np.ndarray] | None":
    for name in names:
        if table.extra[name].dtype == object:
            raise BadInput(f"the observable {name} holds texts; only numbers can be compared")
    return {name: table.extra[name] for name in names} or None


def _null(options: dict[str, Any], reference: "Table") -> Any:
    from sparker import tables
    from sparker.nulls import Permutation, Simulator

    pool, weights = options["pool"], options["weights"]
    if pool is None:
        return Permutation(group_rows=options["group_rows"])
    of_pool = [] if options["pool_unweighted"] else _given(options, "weights")
    try:
        table = tables.read(pool, columns=reference.columns or None, extra=of_pool)
    except tables.FileError as error:
        if f"has no column {weights!r}" not in str(error):
            raise
        raise BadInput(
            f"{error}. The rows of REFERENCE have weights, so those of --pool need theirs, in a "
            "column of the same name; --pool-unweighted if they have the density of DATA as they "
            "are"
        ) from error
    return Simulator(table, pool_weights=table.extra[weights] if of_pool else weights and 1)


def _given(options: dict[str, Any], *names: str) -> list[str]:
    """The columns that these options name."""
    return [options[name] for name in names if options[name]]


def _of_both(name: str | None, *tables: "Table") -> Any:
    return tuple(table.extra[name] for table in tables) if name else None


def _check_reach(alpha: float | None, n_toys: int) -> None:
    """Refuse a level that no outcome could reach, before hours are spent on it."""
    if alpha is not None and 0 < n_toys < 1 / alpha - 1:
        missing = math.ceil(1 / alpha - 1) - n_toys
        raise BadInput(
            f"--alpha {alpha:g} is out of reach: the smallest p-value of {n_toys} toys is "
            f"{1 / (n_toys + 1):.2g}; ask for {missing} more by --toys, or for a larger --alpha"
        )
