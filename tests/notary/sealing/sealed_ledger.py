"""A ledger with old calls, checkpoints and young calls, and commands that seal and verify it."""

import json
import subprocess
from collections.abc import Iterable
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import msgspec

from ipc.messages.sealing import CutLedger, LedgerCut
from ipc.operations.calls import Open
from ipc.operations.evidence import ReadCheckpoint
from notary.operations.cutting import SealedRange
from notary.programs.offline import main as verifier
from notary.programs.seal import seal
from notary.sealing.copying import CopiedRange, copy
from tests.notary.running import Running
from tests.notary.samples import NOW, make_note, record_call

CALLS = 5
AGE = 2 * 86_400.0


def write_calls(notary: Running, start: float, calls: int = CALLS) -> None:
    """Write `calls` calls and notes from `start` on, one a second, and then a checkpoint."""
    for number in range(calls):
        notary.clock.time = start + number
        record_call(notary.front)
        notary.front.ask(make_note(reason=f"note {number}"))
    notary.front.ask(ReadCheckpoint())


def write_ages(notary: Running, ages: int = 3, more: Iterable[Open] = ()) -> None:
    """Calls of several ages; the first begins at NOW, each AGE seconds later. `more` are calls of the first age."""
    write_calls(notary, NOW)
    for asked in more:
        notary.clock.time = NOW + 7200  # of the checkpoints of an hour one is kept
        notary.front.ask(asked)
    notary.front.ask(ReadCheckpoint())
    for age in range(1, ages):
        write_calls(notary, NOW + age * AGE)
    notary.stop()


def copied_age(notary: Running, folder: Path) -> CopiedRange:
    """Copy the oldest of three ages into a segment while the notary serves, without a cut."""
    for age in range(3):
        write_calls(notary, NOW + age * AGE)
    notary.clock.time = NOW + 10 * AGE
    return copy(notary.settings, NOW + AGE, folder, "uid:7")


def seal_age(notary: Running, folder: Path, age: int) -> str:
    """Seal what is older than the calls of this age."""
    notary.clock.time = NOW + 10 * AGE
    return seal(notary.settings, NOW + age * AGE, folder, clock=notary.clock)


def verify(*arguments: object) -> "subprocess.CompletedProcess[str]":
    """`gateway ledger verify`, without a process of its own."""
    words = [str(word) for word in arguments]
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as errors:
        code = verifier(words)
    return subprocess.CompletedProcess(words, code, out.getvalue(), errors.getvalue())


def keys_of(notary: Running, file: Path) -> Path:
    """The public receipt keys, in a file."""
    path = notary.settings.receipt_keys_jwks_path
    assert path is not None
    file.write_bytes(Path(path).read_bytes())
    return file


def events_in(connection: Any) -> list[dict[str, Any]]:
    """The events of a ledger or segment, oldest first."""
    return [json.loads(row[0]) for row in connection.execute("SELECT bytes FROM events ORDER BY seq")]


def settings_text(notary: Running) -> str:
    """Its settings, as programs take them."""
    return msgspec.json.encode(notary.settings).decode()


def asked(notary: Running, sealed: SealedRange | str) -> LedgerCut:
    """The answer of the notary that serves."""
    text = sealed if isinstance(sealed, str) else msgspec.json.encode(sealed).decode()
    notary.thread.tell(CutLedger("cut-1", text))
    while not isinstance(told := notary.thread.hears(), LedgerCut):
        pass
    return told
