"""``python -m sparker`` is the command line, too."""

from sparker.cli import main

if __name__ == "__main__":
    main()
