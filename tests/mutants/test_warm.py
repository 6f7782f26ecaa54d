"""What is done once for all trials does what each trial would do by itself."""

import subprocess
import sys

from mutants.rooms import ROOT

WORKER = """
import socket
from mutants import warm
from tests.support import echo_template

warm.in_trial()
(template,) = echo_template._TEMPLATES
assert template is echo_template.echo_template()
one, other = socket.socketpair()
worker = template.fork((one.fileno(), other.fileno()), ["--nothing-that-a-worker-knows"])
print(worker.wait(60), template._process)
"""


def test_workers_of_a_trial_come_from_a_fork_of_it_that_tells_how_they_ended() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WORKER], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )  # fmt: skip
    assert done.stdout.split() == ["2", "None"], done.stderr
