"""``python -m sparker`` is the command line, too."""

from sparker.cli.main import main

if __name__ == "__main__":
    main()
