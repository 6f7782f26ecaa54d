"""Starts one of our programs: `python -I launch.py MODULE ARGUMENTS…`; and the console script `gateway`.

Owns where our modules are found: in the folder of this file, before everything else. That folder is the checkout, or
`action_gateway/` among the installed packages: nothing else knows the difference.

SECURITY: an isolated interpreter (-I) sees no PYTHON* variable, no current directory and no folder of a script. What
is added here is the one folder that this file was installed with.
"""

import os
import runpy
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def main() -> int:
    """The console script: run the command line, return its exit code."""
    sys.path.insert(0, HERE)
    from supervisor.cli import main as command_line

    return command_line()


if __name__ == "__main__":
    sys.path.insert(0, HERE)
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
