"""`python -m tests.chaos.start LIBRARIES MICROSECONDS CLOCK ARGUMENT…`: `gateway` with all its children preloaded."""

import sys

from supervisor.cli import main
from supervisor.programs import Programs

if __name__ == "__main__":
    sys.exit(main(sys.argv[4:], Programs().behind("tests.chaos.preloaded", *sys.argv[1:4])))
