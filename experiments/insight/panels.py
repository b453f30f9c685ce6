"""What the strongest kernel's rows have in common, in words of each data set, and its picture."""

from typing import Any

import numpy as np
from experiments.insight.cases import Case
from experiments.insight.numbers import claim, strongest

from sparker import TestResult

EDGES = np.arange(0, 251, 10.0)
"""Of jet masses in GeV; the last bin holds what lies beyond."""
HIGGS = 125
WINDOW = (110, 140)
N_CLASSES = 8
PAPER_CLASSES = ("zebra", "tiger", "velvet", "dishrag")
N_LINES = 10


def masses(case: Case, result: TestResult) -> dict[str, Any]:
    """Histograms of the jets' mass."""
    claimed = claim(result, strongest(result)).data
    mass = case.of_data

    def counts(values: np.ndarray) -> list[int]:
        inside = np.clip(values, EDGES[0], EDGES[-1] - 1e-3)
        return np.histogram(inside, EDGES)[0].tolist()

    def within(values: np.ndarray) -> float:
        return round(float(np.mean((values >= WINDOW[0]) & (values < WINDOW[1]))), 4)

    kinds = {"reference": case.of_reference, "data": mass, "claimed": mass[claimed]}
    return {
        "edges": EDGES.tolist(),
        **{name: counts(values) for name, values in kinds.items()},
        "planted among the claimed": counts(mass[claimed & case.planted]),
        "median mass": {name: round(float(np.median(v)), 1) for name, v in kinds.items()},
        f"share with a mass of {WINDOW[0]} to {WINDOW[1]}": {
            name: within(values) for name, values in kinds.items()
        },
    }


def draw_masses(ax: Any, found: dict[str, Any], kernel: int) -> None:
    """Shares of rows by mass."""
    from sparker.plots.style import DATA, KERNELS, REFERENCE

    def share(name: str, of: str) -> np.ndarray:
        return np.array(found[name]) / max(sum(found[of]), 1)

    edges = found["edges"]
    n, truly = (sum(found[key]) for key in ("claimed", "planted among the claimed"))
    ax.stairs(share("reference", "reference"), edges, fill=True, color=REFERENCE, label="reference")
    ax.stairs(share("data", "data"), edges, color=DATA, lw=1.5, label="all data")
    claimed = share("claimed", "claimed")
    ax.stairs(claimed, edges, color=KERNELS[1], lw=2, label=f"claimed by kernel {kernel}: {n} rows")
    ax.stairs(
        share("planted among the claimed", "claimed"), edges, fill=True, color=KERNELS[1],
        alpha=0.25, label=f"of these planted: {truly}",
    )  # fmt: skip
    ax.axvline(HIGGS, color="0.3", lw=1, ls="--")
    ax.annotate(f" {HIGGS} GeV", (HIGGS, 0.97), xycoords=("data", "axes fraction"), va="top")
    ax.set(xlabel="jet mass in GeV", ylabel="share of the rows", xlim=(edges[0], edges[-1]))
    ax.margins(y=0.35)
    ax.legend(fontsize=8, loc="upper left", frameon=False, borderaxespad=0.2)


def classes(case: Case, result: TestResult) -> dict[str, Any]:
    """The classes whose mean logit is furthest above that of all data."""
    claimed = claim(result, strongest(result)).data
    everyone = case.data.mean(0)
    above = case.data[claimed].mean(0) - everyone
    of_planted = case.data[case.planted].mean(0) - everyone
    order = np.argsort(-above, kind="stable")
    place = np.empty(len(order), int)
    place[order] = np.arange(1, len(order) + 1)
    return {
        "claimed": int(claimed.sum()),
        "planted": int((claimed & case.planted).sum()),
        "classes": [
            {
                "name": str(case.columns[i]),
                "claimed": round(float(above[i]), 3),
                "planted": round(float(of_planted[i]), 3),
            }
            for i in order[:N_CLASSES]
        ],
        "place of the paper's classes": {
            name: int(place[case.columns == name].min())
            for name in PAPER_CLASSES
            if name in case.columns
        },
    }


def draw_classes(ax: Any, found: dict[str, Any], kernel: int) -> None:
    """A bar a class."""
    from sparker.plots.style import DATA, KERNELS

    y = np.arange(len(found["classes"]))[::-1]
    label = f"{found['claimed']} rows that kernel {kernel} claims, {found['planted']} planted"
    of = {key: [one[key] for one in found["classes"]] for key in ("name", "claimed", "planted")}
    ax.barh(y, of["claimed"], 0.7, color=KERNELS[0], alpha=0.8, label=label)
    ax.plot(of["planted"], y, "D", color=DATA, ms=5, label="all planted rows")
    ax.set_yticks(y, of["name"], fontsize=9)
    ax.set(xlabel="mean logit above that of all data", ylim=(-0.6, len(y) + 0.7))
    ax.legend(fontsize=8, loc="upper right", frameon=False, ncols=1)


def lines(case: Case, result: TestResult) -> dict[str, Any]:
    """The lines that lie nearest to the kernel."""
    kernel = strongest(result)
    centre = np.asarray(result.model.mu)[kernel]
    distance = np.linalg.norm(result.transform(case.data) - centre, axis=1)
    nearest = np.argsort(distance, kind="stable")
    own = result.data_components[:, kernel]
    k = int(case.planted.sum())
    return {
        "planted among all": round(float(case.planted.mean()), 4),
        "planted among the nearest": {
            str(n): int(case.planted[nearest[:n]].sum()) for n in (N_LINES, 50, k)
        },
        "lines": [
            {
                "text": str(case.of_data[i]),
                "planted": bool(case.planted[i]),
                "f_i": round(float(own[i]), 3),
            }
            for i in nearest[:N_LINES]
        ],
    }


def draw_lines(ax: Any, found: dict[str, Any], kernel: int) -> None:
    """The lines as text, a mark at those that were planted."""
    from sparker.plots.style import KERNELS

    rows = found["lines"]
    for y, row in zip(np.arange(len(rows))[::-1], rows, strict=True):
        style = {"color": KERNELS[1]} if row["planted"] else {"color": "0.25"}
        fill = {} if row["planted"] else {"mfc": "none"}
        ax.plot(0, y, "o", ms=7, clip_on=False, **style, **fill)
        ax.text(0.05, y, row["text"].replace("$", r"\$"), va="center", fontsize=9, **style)
    n = sum(row["planted"] for row in rows)
    ax.set(
        xlim=(-0.03, 1),
        ylim=(-0.6, len(rows) - 0.4),
        xticks=[],
        yticks=[],
        xlabel=f"data rows nearest to kernel {kernel};\nfilled: planted "
        f"({n} of {len(rows)}; of all data {found['planted among all']:.0%})".replace("%", " %"),
    )
    for side in ax.spines.values():
        side.set_visible(False)
