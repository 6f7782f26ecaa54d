"""The console script `gateway` over the fake programs."""

import sys
from pathlib import Path

from supervisor.cli import main
from supervisor.programs import Programs

HERE = Path(__file__).parent
FAKES = Programs(
    front=(str(HERE / "fake_front.py"),),
    policy=(str(HERE / "fake_policy.py"),),
    template=(str(HERE / "fake_template.py"),),
)

sys.exit(main(sys.argv[1:], FAKES))
