"""Secrets files as operators make them: with the real sops and the real age."""

import json
import os
import subprocess
from pathlib import Path

from tests.support.go_programs import go_program

SECONDS = 60.0


def new_identity(file: Path) -> str:
    """Make an age identity in a private file; returns its recipient."""
    subprocess.run([go_program("age-keygen"), "-o", str(file)], check=True, capture_output=True, timeout=SECONDS)
    (line,) = [one for one in file.read_text().splitlines() if one.startswith("# public key: ")]
    return line.removeprefix("# public key: ")


def encrypted_by_sops(file: Path, values: dict[str, str], recipient: str, *options: str) -> None:
    """Put a SOPS file of `values` in the place of `file`, whole, with mode 0600."""
    plain = file.with_suffix(".plain.json")
    plain.write_text(json.dumps(values))
    command = [go_program("sops"), "--age", recipient, *options, "--encrypt", str(plain)]
    done = subprocess.run(command, check=True, capture_output=True, timeout=SECONDS)
    plain.unlink()
    new = file.with_suffix(".new")
    new.write_bytes(done.stdout)
    new.chmod(0o600)
    os.replace(new, file)
