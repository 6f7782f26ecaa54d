"""`… tests.chaos.preloaded LIBRARIES MICROSECONDS CLOCK MODULE ARGUMENT…` becomes the program MODULE on a disk and a
clock that can be spoilt. The process stays the same one: its supervisor sees no difference."""

import os
import sys

from supervisor.programs import INTERPRETER

libraries, microseconds, clock, *program = sys.argv[1:]
environment = {
    **os.environ, "LD_PRELOAD": libraries, "GATEWAY_BENCH_FLUSH_US": microseconds, "GATEWAY_CHAOS_CLOCK": clock,
}  # fmt: skip
os.execve(INTERPRETER[0], [*INTERPRETER, *program], environment)
