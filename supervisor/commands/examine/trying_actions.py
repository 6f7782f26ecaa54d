"""`gateway test actions`: run the tests beside manifests on a gateway of their own, which lives as long as the command.

A program of the front reads the tests and plays upstream, agent and operator (frontend/action_tests/main.py). The
command writes nothing outside its temporary folder, and resolves no name.
"""

import argparse
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ipc.process.exits import Exit
from supervisor.children.helpers import Helpers
from supervisor.commands import Commands
from supervisor.programs import INTERPRETER, child_environment
from supervisor.refusal import Refused

TEST_SECONDS = 3600.0
"""For all tests of a folder together."""
STOP_SECONDS = 30.0
LOG_LINES = 5


def add(commands: Commands) -> None:
    """Put `test` beside the other commands."""
    test = commands.add_parser("test", help="run the tests of actions that stand beside their manifests")
    kinds = test.add_subparsers(title="commands", required=True, metavar="COMMAND")
    actions = kinds.add_parser(
        "actions",
        help="run NAME.test.yaml beside NAME.yaml",
        description="Start a gateway with the manifests of a folder in a temporary folder, play the upstream of their "
        "calls, and run each test of the files *.test.yaml. Exit code 1 when one fails, 78 when a file has problems.",
    )
    actions.add_argument("folder", type=Path, metavar="DIR", help="folder of manifests and tests")
    actions.add_argument(
        "--policy", type=Path, metavar="DIR",
        help="policy folder; without it the example policy, in which each principal of a test may call every action",
    )  # fmt: skip
    actions.add_argument("--tap", action="store_true", help="print TAP version 14")
    actions.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    for folder in filter(None, (options.folder, options.policy)):
        if not folder.is_dir():
            raise Refused(Exit.CONFIG, f"{folder} is not a folder.")
    arguments = ["--folder", str(options.folder.absolute()), *(["--tap"] if options.tap else [])]
    arguments += ["--policy", str(options.policy.absolute())] if options.policy else []
    sys.stdout.flush()
    with tempfile.TemporaryDirectory(prefix="gateway-test-") as work, Helpers(os.environ, TEST_SECONDS) as helpers:
        told, tells = os.pipe()
        is_ready, readies = os.pipe()
        fds = ("--told-fd", str(tells), "--ready-fd", str(is_ready))
        runner = helpers.start(
            "frontend.action_tests.main", "--work", work, *fds, *arguments, fds=(tells, is_ready),
            stdout=sys.stdout.fileno(),
        )  # fmt: skip
        os.close(tells)
        os.close(is_ready)
        if not _line(told, helpers):  # it has printed the problems
            os.close(readies)
            return helpers.wait(runner)
        with _gateway(Path(work), helpers) as ready, os.fdopen(readies, "wb") as hands_on:
            hands_on.write(ready)
            hands_on.close()
            return helpers.wait(runner)


@contextmanager
def _gateway(work: Path, helpers: Helpers) -> Iterator[bytes]:
    """A dev gateway by the configuration in the folder, and its ready line. Raises Refused with the end of its log."""
    log = work / "gateway.log"
    command = ["supervisor.attached", "--parent", str(os.getpid()), "dev"]
    command += ["--config", str(work / "gateway.toml"), "--state-dir", str(work / "state")]
    with log.open("wb") as errors:
        gateway = subprocess.Popen(
            [*INTERPRETER, *command, "--listen", "127.0.0.1:0", "--no-upstream"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, start_new_session=True, cwd="/",
            env=_environment(work, os.environ),
        )  # fmt: skip
    assert gateway.stdout is not None
    try:
        ready = _line(gateway.stdout.fileno(), helpers)
        if not ready:
            last = "\n".join(log.read_text(errors="replace").splitlines()[-LOG_LINES:])
            raise Refused(Exit.FAILED, f"the gateway of the tests did not start:\n{last}")
        yield ready
    finally:
        gateway.terminate()
        try:
            gateway.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            gateway.kill()
            gateway.wait(STOP_SECONDS)
        gateway.stdout.close()


def _environment(work: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """SECURITY: the gateway trusts the authority of the played upstream alone, and none of GATEWAY_* reaches it."""
    return {**child_environment(environ), "SSL_CERT_FILE": str(work / "authority.pem"), "SSL_CERT_DIR": str(work)}


def _line(descriptor: int, helpers: Helpers) -> bytes:
    """One line, or less where the other side ends. Raises Refused at the deadline."""
    data = b""
    while not data.endswith(b"\n"):
        readable, _, _ = select.select([descriptor], [], [], helpers.left)
        part = os.read(descriptor, 65536) if readable else b""
        if readable and not part:
            break
        data += part
    return data
