"""`gateway`, whose front, notary, deliverer, broker, exporter, template and compiler try to escape: `-m
tests.support.escape_inside_gateway FOLDER dev …`. See tests/support/escape_inside.py."""

import sys

from supervisor.cli import main
from supervisor.programs import Programs

if __name__ == "__main__":
    inside = ("tests.support.escape_inside", sys.argv[1])
    made = Programs()
    programs = Programs(
        front=(*inside, *made.front), notary=(*inside, *made.notary), deliverer=(*inside, *made.deliverer),
        broker=(*inside, *made.broker), exporter=(*inside, *made.exporter),
        template=(*inside, *made.template), spare_policy=(),
    )  # fmt: skip
    sys.exit(main(sys.argv[2:], programs))
