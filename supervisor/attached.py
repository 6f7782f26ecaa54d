"""The command line of a gateway that belongs to a command: it ends when that does, however that ends.

`gateway test actions` starts its gateway so.
"""

import argparse
import sys

from ipc.process.parent import die_with_parent
from supervisor.cli import main as command_line


def main() -> int:
    """Entry point: what stands behind `--parent PID` is a command line; returns its exit code."""
    parser = argparse.ArgumentParser(prog="supervisor.attached", allow_abbrev=False)
    parser.add_argument("--parent", type=int, required=True)
    options, rest = parser.parse_known_args()
    die_with_parent(options.parent)
    return command_line(rest)


if __name__ == "__main__":
    sys.exit(main())
