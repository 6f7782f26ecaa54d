"""`python -m tests.chaos.start LIBRARIES MICROSECONDS CLOCK ARGUMENT…`: `gateway` with all its children preloaded."""

import sys
from dataclasses import fields, replace

from supervisor.cli import main
from supervisor.programs import Programs

if __name__ == "__main__":
    prefix = ("tests.chaos.preloaded", *sys.argv[1:4])
    programs = Programs()
    programs = replace(programs, **{one.name: (*prefix, *getattr(programs, one.name)) for one in fields(programs)})
    sys.exit(main(sys.argv[4:], programs))
