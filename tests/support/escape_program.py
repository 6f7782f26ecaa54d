"""A program of the product that tries to escape: `-m tests.support.escape_program REPORT FACTS MODULE ARGUMENTS…`.

MODULE runs as it is until it builds its walls. In that moment it forks once for each step of the escape table; each
child builds the walls of the program, by its own code, and tries its step. The results go to the descriptor REPORT,
as JSON.
"""

import errno
import json
import os
import runpy
import signal
import sys
from typing import Any

from ipc.walls.confining import Confinement
from tests.support.escape_table import OLD_CALL, ROWS, STEPS

_confine = Confinement.confine


def tried(confinement: Confinement, step: str, facts: dict[str, Any]) -> str:
    """How a child was refused a step; or what it gained."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            _confine(confinement)
            confinement.seal()
            os.write(writing, _came_of(step, facts).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return said or (signal.Signals(-status).name if status < 0 else f"ended with {status}")


def _came_of(step: str, facts: dict[str, Any]) -> str:
    try:
        return f"gained {STEPS[step](facts)}"
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, str(error))


def main() -> None:
    """Run the program up to its walls."""
    report, facts = int(sys.argv[1]), json.loads(sys.argv[2])
    facts["parent"] = os.getpid()

    def confine(confinement: Confinement) -> None:
        steps = [row.name for row in ROWS if row.name != OLD_CALL]
        outcomes = {step: tried(confinement, step, facts) for step in steps}
        with os.fdopen(report, "w") as pipe:
            json.dump(outcomes, pipe)
        os._exit(0)

    setattr(Confinement, "confine", confine)  # noqa: B010
    module, sys.argv = sys.argv[3], sys.argv[3:]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
