"""Draw the pictures of the README and the docs, with the package itself."""

from pathlib import Path

from sparker.demo import run

if __name__ == "__main__":
    run(seed=7, n_calibration=100, output=Path(__file__).parent / "images" / "extreme_tail.png")
