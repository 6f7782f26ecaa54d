"""`python -m bench.start LIBRARY MICROSECONDS ARGUMENT…`: the console script `gateway` on a disk with slow flushes."""

import sys
from pathlib import Path

from bench.slow_disk import preloaded
from supervisor.cli import main
from supervisor.programs import Programs

if __name__ == "__main__":
    sys.exit(main(sys.argv[3:], preloaded(Programs(), Path(sys.argv[1]), int(sys.argv[2]))))
