"""The program ``sqlite-dash``, also as ``python -m sqlite_dash``."""

import os
import sys

from ._loading import program_path


def main() -> None:
    """Becomes the program."""
    path = program_path()
    os.execv(path, ["sqlite-dash", *sys.argv[1:]])


if __name__ == "__main__":
    main()
