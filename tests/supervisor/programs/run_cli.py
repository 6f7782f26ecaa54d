"""The console script `gateway` over the fake programs."""

import sys

from supervisor.cli import main
from supervisor.programs import Programs

FAKES = Programs(
    front=("tests.supervisor.programs.fake_front",),
    notary=("tests.supervisor.programs.fake_notary",),
    policy=("tests.supervisor.programs.fake_policy",),
    template=("tests.supervisor.programs.fake_template",),
)

sys.exit(main(sys.argv[1:], FAKES))
