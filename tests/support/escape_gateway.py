"""`gateway`, with workers that try to escape: `python -m tests.support.escape_gateway dev …`."""

import sys

from supervisor.cli import main
from supervisor.programs import Programs

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Programs(template=("tests.support.escape_template",))))
