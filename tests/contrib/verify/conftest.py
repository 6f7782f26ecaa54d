"""The verifier in Go, built once for all tests of this folder."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.contrib.verify.vectors import FOLDER

SOURCE = FOLDER / "go"
OFFLINE = {"GOPROXY": "off", "GOSUMDB": "off", "GOTOOLCHAIN": "local", "GOFLAGS": "-buildvcs=false", "CGO_ENABLED": "0"}


def go() -> str:
    """The compiler. Without one the tests are skipped, unless this is CI, which must have one."""
    compiler = shutil.which("go")
    if compiler is None and os.environ.get("CI"):
        pytest.fail("CI runs the Go verifier too: no go on the PATH")
    if compiler is None:
        pytest.skip("no go on the PATH to build the Go verifier with")
    return compiler


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> list[str | Path]:
    built = tmp_path_factory.mktemp("go") / "verify"
    done = subprocess.run(
        [go(), "build", "-o", str(built), "."],
        cwd=SOURCE, env=os.environ | OFFLINE, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [built]
