"""A verifier as an auditor runs it: a program, a file, keys."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.contrib.verify.vectors import PROVEN, Vector

UNREADABLE = "unreadable"
NO_BUNDLES = {
    "nothing": b"", "list": b"[]", "null": b"null", "cut": b'{"bundle_version":1', "no-text": b"\xff",
    "nan": b'{"a":NaN}', "deep": b"[" * 100_000, "too-large": b" " * (16 * 1024**2 + 1),
}  # fmt: skip
"""The exit code for evidence that can't be judged."""


class Verdict(NamedTuple):
    """The result of a verifier: its exit code, "proven" or the class of the refusal, and all it wrote."""

    code: int
    reason: str
    output: str


def exit_code(reason: str) -> int:
    """Check the guarantees of the verifiers."""
    return {PROVEN: 0, UNREADABLE: 2}.get(reason, 1)


def run(program: Sequence[str | Path], *arguments: str | Path) -> Verdict:
    done = subprocess.run(
        [str(one) for one in (*program, *arguments)],
        cwd="/", capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    first = done.stdout.partition("\n")[0]
    reason = first.partition("(")[2].partition(")")[0] if first.startswith("not proven (") else first
    return Verdict(done.returncode, reason, done.stdout + done.stderr)


def judge(program: Sequence[str | Path], vector: Vector, folder: Path) -> Verdict:
    """Have a program verify a vector, whose files are written to `folder`."""
    bundle, receipt_keys = folder / "bundle.json", folder / "jwks.json"
    bundle.write_bytes(vector.data)
    arguments: list[str | Path] = [bundle, "--origin-key", vector.origin_key]
    if vector.receipt_keys is not None:
        receipt_keys.write_bytes(vector.receipt_keys)
        arguments += ["--receipt-keys", receipt_keys]
    for jkt in vector.operator_jkts:
        arguments += ["--operator-jkt", jkt]
    return run(program, *arguments)
