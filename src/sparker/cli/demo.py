"""``sparker demo``: one class of handwritten digits, hidden among the others at a few percent."""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from sparker.cli.options import A_SEED, FILE, preset, toys_option
from sparker.cli.outputs import Attempts, check_outputs
from sparker.cli.terminal import Out, note, reader_may_leave

if TYPE_CHECKING:
    import numpy as np

    from sparker.result import TestResult

N_REFERENCE = 1000
N_DATA = 600
N_HIDDEN = 24
SIDE = 8  # pixels of a picture


@click.command()
@preset("--seed", default=0, type=A_SEED, help="Draws the digits and starts the fits.")
@preset("--output", default="sparker-demo.html", type=FILE, help="Where the report goes.")
@toys_option(200)
@preset(
    "--hidden",
    default=0,
    type=click.IntRange(0, 9),
    help="Digit to hide; some resemble others and are harder to find.",
)
def demo(seed: int, output: Path, toys: int, hidden: int) -> None:
    """Hide a few handwritten digits of one class among others, and find them.

    Real data, no download. Ends with a p-value, the most anomalous digits and a report.

    Example: sparker demo --seed 1
    """
    check_outputs({"--output": output})
    run(hidden, seed, toys, output)


class Digits(NamedTuple):
    """Two samples of scikit-learn's handwritten digits, pictures of 8 x 8 pixels."""

    reference: "np.ndarray"  # (N_REFERENCE, 64) without the hidden class
    data: "np.ndarray"  # (N_DATA, 64)
    label: "np.ndarray"  # (N_DATA,) which digit a data row shows; the test does not see it


def hide(hidden: int, seed: int) -> Digits:
    """Draw the samples."""
    import numpy as np
    from sklearn.datasets import load_digits

    pixels, label = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    others = rng.permutation(np.flatnonzero(label != hidden))[: N_REFERENCE + N_DATA - N_HIDDEN]
    few = rng.permutation(np.flatnonzero(label == hidden))[:N_HIDDEN]
    data = rng.permutation(np.concatenate([others[N_REFERENCE:], few]))
    return Digits(pixels[others[:N_REFERENCE]], pixels[data], label[data])


def look(digits: Digits, n_toys: int, seed: int) -> "TestResult":
    """Test the digits, pixel by pixel."""
    from sparker.detect import test
    from sparker.engine.preprocess import unchanged
    from sparker.tables import Table

    names = tuple(f"pixel {i // SIDE},{i % SIDE}" for i in range(SIDE**2))  # from the top left
    reference, data = (Table(rows, names, {}) for rows in digits[:2])
    # Pixels share one scale already.
    return test(reference, data, n_toys=n_toys, seed=seed, preprocess=unchanged)


def run(hidden: int, seed: int, n_toys: int, output: Path) -> None:
    """Hide the digits, look for them, and write the report."""
    digits = hide(hidden, seed)
    note(
        f"{N_DATA} handwritten digits, {N_HIDDEN} of them a {hidden}, which none of the "
        f"{N_REFERENCE} in the reference is. Testing them with {n_toys} toys ..."
    )
    result = look(digits, n_toys, seed)
    attempts = Attempts()
    with attempts.at("answer"), reader_may_leave():
        say(result, digits, hidden)
    with attempts.at("report"):
        result.report(
            output,
            images=list(16 - digits.data.reshape(-1, SIDE, SIDE)),  # ink on paper
            texts=[f"a {label}" for label in digits.label],
            title=f"Is there something among these {N_DATA} digits that the reference lacks?",
            command=f"sparker demo --hidden {hidden} --seed {seed} --toys {n_toys}",
        )
        note(f"Now open the report: {output}")
    attempts.end()


def say(result: "TestResult", digits: Digits, hidden: int) -> None:
    """Print the summary, and which digits the most anomalous rows are."""
    import numpy as np

    top = result.ranking[:N_HIDDEN]
    out = Out()
    out.say(result.summary())
    shown = " ".join(str(label) for label in digits.label[top])
    n_found = np.sum(digits.label[top] == hidden)
    out.say(f"The {len(top)} most anomalous digits: {shown}")
    out.say(f"{n_found} of them are among the {N_HIDDEN} hidden {hidden}s.")
