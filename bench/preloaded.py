"""`python -I preloaded.py LIBRARY MICROSECONDS ARGUMENT…` becomes `python -I ARGUMENT…` with the slow disk preloaded.

The process stays the same one (pid, descriptors, parent, session), so its supervisor sees no difference.
"""

import os
import sys

library, microseconds, *arguments = sys.argv[1:]
environment = {**os.environ, "LD_PRELOAD": library, "GATEWAY_BENCH_FLUSH_US": microseconds}
os.execve(sys.executable, [sys.executable, "-I", *arguments], environment)
