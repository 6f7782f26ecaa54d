"""`… bench.preloaded LIBRARY MICROSECONDS MODULE ARGUMENT…` becomes the program MODULE with the slow disk preloaded.

The process stays the same one (pid, descriptors, parent, session), so its supervisor sees no difference.
"""

import os
import sys

from supervisor.programs import INTERPRETER

library, microseconds, *program = sys.argv[1:]
environment = {**os.environ, "LD_PRELOAD": library, "GATEWAY_BENCH_FLUSH_US": microseconds}
os.execve(INTERPRETER[0], [*INTERPRETER, *program], environment)
