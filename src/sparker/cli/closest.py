"""``sparker closest``: which of several generators is closest to the data?"""

from functools import partial
from typing import Any

import click

from sparker.cli.many import Files, sample_files
from sparker.cli.options import (
    FILE,
    annealed_option,
    check_together,
    column_options,
    command_line,
    fit_options,
    fit_settings,
    preset,
    read_beside,
    read_table,
    table_options,
    table_settings,
)
from sparker.cli.outputs import Attempts, check_outputs
from sparker.cli.terminal import Out, answer_json, brief, cell, reader_may_leave


@click.command()
@click.argument("data")
@click.argument("generated", nargs=-1, required=True)
@column_options
@table_options
@click.option("--weights", help="Column of GENERATED with the weights of its rows.")
@preset(
    "--folds",
    default=5,
    type=click.IntRange(2, 100),
    help="Fits for each of GENERATED, each without so large a part of the rows.",
)
@preset(
    "--splits",
    default=10,
    type=click.IntRange(3, 1000),
    help="How often rows are split into halves, in which all is done again, for the intervals.",
)
@annealed_option
@fit_options
@click.option("--report", type=FILE, help="Write a report, an HTML file.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def closest(data: str, generated: tuple[str, ...], **options: Any) -> None:
    """Which of GENERATED, files or folders of files, is closest to DATA?

    Ranks them by a distance, t for each row of DATA on rows that were not fitted: about 0 for a
    perfect generator. Says how sure the intervals and the first place are. Exit codes: 0, or 2 if
    some of GENERATED could not be compared; the others are.

    Example: sparker closest data.csv model-a.csv model-b.csv
    """
    from sparker.generators import closest as find_closest

    check_together("closest")
    settings = fit_settings(options, anneal=options.pop("annealed"))
    del settings["n_toys"], settings["combine"]
    check_outputs({"--report": options["report"]}, [data, *generated])
    files = sample_files(generated, [data])
    weights = options["weights"]
    first = read_table(data, options)
    extra = [weights] if weights else []
    found = find_closest(
        first,
        Files(files, partial(read_beside, first, options=options, reference=data, extra=extra)),
        n_folds=options["folds"],
        n_splits=options["splits"],
        reference_weights=weights,
        **table_settings(options, first),
        **settings,
    )
    attempts = Attempts()
    with attempts.at("answer"), reader_may_leave():
        if options["as_json"]:
            answer_json(found.to_dict(), indent=1)
        else:
            _speak(found)
    attempts.write("report", options["report"], partial(found.report, command=command_line()))
    failed = [one for one in found.candidates if one.error is not None]
    if failed:
        attempts.failed(
            f"{len(failed)} of {len(found.candidates)} files could not be compared, the first of "
            f"them {failed[0].name}: {failed[0].error}"
        )
    attempts.end()


def _speak(found: Any) -> None:
    out = Out()
    out.say(found.verdict(), style="bold")
    shown = found.candidates
    out.table(
        "The closest first",
        {
            "generated": [cell(one.name) for one in shown],
            "rows": [str(one.n_rows or "") for one in shown],
            "distance": [brief(one.distance, 3) for one in shown],
            "95 % interval": [_interval(one.interval) for one in shown],
            "behind": [brief(one.behind, 3) if i else "" for i, one in enumerate(shown)],
            "p-value": [brief(one.p_value, 3) if i else "" for i, one in enumerate(shown)],
        },
    )
    for one in shown:
        for warning in one.warnings:
            out.say(f"warning: {one.name}: {warning}")


def _interval(ends: tuple[float, float]) -> str:
    return "" if ends[0] != ends[0] else f"{ends[0]:.3g} to {ends[1]:.3g}"
