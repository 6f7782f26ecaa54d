"""A disk whose flush takes longer: builds slow_disk.c, and puts it before every program that the supervisor starts.

Production stays as it is: the supervisor gives its children a fixed environment, in which nothing is preloaded. Only
this start script replaces the programs by `bench/preloaded.py`, which sets the environment and becomes the program.
"""

import shutil
import subprocess
from pathlib import Path

from supervisor.programs import Programs

HERE = Path(__file__).resolve().parent


class NoCompilerError(Exception):
    """There is no C compiler to build the shim with."""


def built(folder: Path) -> Path:
    """The shim as a library in `folder`. Raises NoCompilerError, and subprocess.CalledProcessError if it fails."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise NoCompilerError("no C compiler (cc) is installed")
    library = folder / "slow_disk.so"
    command = [compiler, "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o", str(library), str(HERE / "slow_disk.c")]
    subprocess.run(command, check=True)
    return library


def preloaded(programs: Programs, library: Path, microseconds: int) -> Programs:
    """The same programs, each with the shim before it."""
    return programs.behind("bench.preloaded", str(library), str(microseconds))
