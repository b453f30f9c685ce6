"""How large a lower bound can be: rows ordered by someone who knows what the anomalies look like.

    python -m experiments.answers.oracle --data DIR

``sparker`` has to find out from 500 rows which of them are odd. Here a classifier has seen all rows
of a table with their kinds (every row is scored by one that has not seen it), and one order by its
score is counted and inverted as ``findings.bound`` does. What is ordinary by every measure of such
a score no lower bound can count. Adds to ``oracle.json``, table by table.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from experiments.answers.problems import Table, problems
from experiments.answers.run import FRACTIONS, N_DATA, N_REFERENCE
from sklearn.base import ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sparker.engine.sample import TwoSample
from sparker.findings.bound import CONFIDENCE, at_least
from sparker.findings.orders import Order
from sparker.system.versions import versions

RESULT = Path(__file__).parent / "oracle.json"
N_TOYS = 199
N_SAMPLES = 40
MANY_COLUMNS = 500
"""From so many on, the classifier is linear: trees take hours."""


def classifier(n_columns: int, seed: int) -> ClassifierMixin:
    """Who knows the kinds."""
    if n_columns >= MANY_COLUMNS:
        linear = LogisticRegression(C=0.01, class_weight="balanced", max_iter=500)
        return make_pipeline(StandardScaler(), linear)
    return HistGradientBoostingClassifier(
        class_weight="balanced", early_stopping=False, max_iter=200, random_state=seed
    )


def scores(table: Table, seed: int = 0) -> Table:
    """The rows of a table by one number each: how anomalous they look to who knows the kinds."""
    rows = np.concatenate(table)
    kinds = np.repeat([0, 1], [len(part) for part in table])
    knows = classifier(rows.shape[1], seed)
    folds = StratifiedKFold(10, shuffle=True, random_state=seed)
    found = cross_val_predict(knows, rows, kinds, cv=folds, method="decision_function")
    return Table(*(found[kinds == kind, None] for kind in (0, 1)))


def bound(reference: np.ndarray, data: np.ndarray, rng: np.random.Generator) -> int:
    """What one order by score proves, with 95 % confidence."""
    score = np.concatenate([reference, data])[:, 0]
    labels = np.repeat([0.0, 1.0], [len(reference), len(data)])
    labels = np.stack([labels] + [rng.permutation(labels) for _ in range(N_TOYS)])
    turn = rng.permutation(len(score))  # decides between equals
    order = Order("score", turn[np.argsort(-score[turn], kind="stable")])
    toys = TwoSample(score[:, None], (1 - labels) * (len(data) / len(reference)), labels)
    return at_least(toys, [order], 1 - CONFIDENCE, given=True).too_many


def main() -> None:
    """Every real table, every share of planted rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the real tables")
    options = parser.parse_args()
    record = {
        "command": "python -m experiments.answers.oracle --data DIR",
        "versions": versions(),
        "n_samples": N_SAMPLES,
        "n_toys": N_TOYS,
        "median": json.loads(RESULT.read_text())["median"] if RESULT.exists() else {},
    }
    for name, draw in problems(options.data).items():
        if not isinstance(draw, Table) or name in record["median"]:
            continue
        scored = scores(draw)
        rng = np.random.default_rng([3, *name.encode()])
        record["median"][name] = {
            str(share): float(
                np.median(
                    [
                        bound(*scored(rng, N_REFERENCE, N_DATA, round(share * N_DATA)), rng)
                        for _ in range(N_SAMPLES)
                    ]
                )
            )
            for share in FRACTIONS
            if share
        }
        print(name, record["median"][name], flush=True)
        RESULT.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
