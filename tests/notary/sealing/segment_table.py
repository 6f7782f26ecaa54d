"""The table of sealed segments in docs/evidence.md, and the changes of which its rows tell."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

from ipc.evidence.kept_values import KeptValue, KeptValues
from ipc.operations.evidence import ReadCheckpoint
from ipc.process.exits import Exit
from notary.programs.offline import main
from tests.notary.running import ROOT, Running
from tests.notary.samples import NOW, make_open
from tests.notary.sealing.sealed_ledger import AGE, keys_of, seal_age, write_calls

PAGE = (ROOT / "docs" / "evidence.md").read_text()
TABLE = PAGE.partition("\n## What is found in sealed segments\n")[2].partition("\n## ")[0]
ROWS = {
    row[0]: tuple(row[1:])
    for line in TABLE.splitlines()
    if len(row := [cell.strip() for cell in line.strip("|").split("|")]) == 5 and row[1] in ("found", "not found")
}
"""The change -> the verdict on the segment alone, with the auditor's keys, on all segments, and with the ledger."""
KEPT = KeptValues((KeptValue("/amount", "100"), KeptValue("/iban", '"3000"', "masked")))
BENT = "CAST(replace(CAST(bytes AS TEXT), '2026', '2025') AS BLOB)"


class AuditedSegments:
    """A folder with a ledger, two segments of it, and the keys that an auditor has."""

    def __init__(self, folder: Path, verifier_key: str) -> None:
        self.folder, self.verifier_key = folder, verifier_key
        self.ledger, self.keys, self.out = folder / "ledger.sqlite3", folder / "keys.json", folder / "segments"

    @property
    def segments(self) -> list[Path]:
        """Oldest first."""
        return sorted(self.out.glob("segment-*"))

    def copy(self, folder: Path) -> "AuditedSegments":
        shutil.copytree(self.folder, folder)
        return AuditedSegments(folder, self.verifier_key)

    def verdicts(self) -> tuple[str, ...]:
        """The results of the four commands, as the document has them."""
        own = ("--keys", self.keys, "--checkpoint-key", self.verifier_key)
        alone = [_found(one) for one in self.segments]
        with_keys = [_found(one, *own) for one in self.segments]
        together, whole = _found(*self.segments), self.whole()[0] != Exit.OK
        return tuple("found" if any(some) else "not found" for some in (alone, with_keys, [together], [whole]))

    def whole(self) -> tuple[int, str]:
        """The verdict on the ledger with its segments, and what is printed."""
        return checked(self.ledger, "--segments", self.out, "--keys", self.keys)


def made(folder: Path) -> AuditedSegments:
    """Calls of three ages, some with kept values; those of two are sealed."""
    notary = Running(folder)
    for age in range(3):
        notary.clock.time = NOW + age * AGE
        notary.front.ask(make_open(kept=KEPT))
        write_calls(notary, NOW + age * AGE + 1)
    verifier_key = notary.front.ask(ReadCheckpoint()).keys[0]
    notary.stop()
    whole = AuditedSegments(folder, verifier_key)
    keys_of(notary, whole.keys)
    for age in (1, 2):
        seal_age(notary, whole.out, age)
    notary.close()
    return whole


Change = Callable[[AuditedSegments, AuditedSegments], None]


def sql(*statements: str, number: int = 1) -> Change:
    """Change rows of a segment, the second one unless another number is given."""

    def change(whole: AuditedSegments, _other: AuditedSegments) -> None:
        with closing(sqlite3.connect(whole.segments[number])) as segment, segment:
            for statement in statements:
                assert segment.execute(statement).rowcount != 0, statement

    return change


def without(number: int) -> Change:
    return lambda whole, _other: whole.segments[number].unlink()


def exchanged(whole: AuditedSegments, _other: AuditedSegments) -> None:
    first, last = whole.segments
    aside = whole.out / "aside"
    first.rename(aside)
    last.rename(first)
    aside.rename(last)


def from_elsewhere(number: int) -> Change:
    def change(whole: AuditedSegments, other: AuditedSegments) -> None:
        shutil.copy(other.segments[number], whole.segments[number])

    return change


EXCHANGED_EVENTS = (
    "UPDATE events SET seq = -1 WHERE seq = 16", "UPDATE events SET seq = 16 WHERE seq = 17",
    "UPDATE events SET seq = 17 WHERE seq = -1",
)  # fmt: skip
INSERTED_EVENT = """INSERT INTO events (seq, event_id, event_type, time, bytes)
SELECT max(seq) + 1, 'evt_more', event_type, time, bytes FROM events"""
CHANGES: dict[str, tuple[Change, ...]] = {
    "a column or a byte of an event": (
        sql(f"UPDATE events SET bytes = {BENT} WHERE seq = 16"),
        sql("UPDATE events SET principal = 'x' WHERE seq = 16"),
    ),
    "an event deleted, inserted, or exchanged with another": (
        sql("DELETE FROM events WHERE seq = 16"), sql("DELETE FROM events WHERE seq > 20"), sql(*EXCHANGED_EVENTS),
        sql(INSERTED_EVENT),
    ),
    "a column or a byte of an intent or of a receipt": (
        sql("UPDATE intents SET principal = 'x'"), sql(f"UPDATE receipts SET bytes = {BENT}"),
    ),
    "an intent or a receipt deleted": (
        sql("DELETE FROM intents WHERE seq = (SELECT max(seq) FROM intents)"),
        sql("DELETE FROM receipts WHERE seq = (SELECT min(seq) FROM receipts)"),
    ),
    "a kept value or its salt changed, or its row deleted": (
        sql("UPDATE kept_values SET value = CAST('101' AS BLOB) WHERE pointer = '/amount'"),
        sql("UPDATE kept_values SET salt = zeroblob(16) WHERE pointer = '/iban'"),
        sql("DELETE FROM kept_values WHERE pointer = '/iban'"),
        sql("UPDATE kept_values SET value = NULL, salt = NULL, erased_by = 1 WHERE pointer = '/iban'"),
    ),
    "hashes of the tree": (sql("UPDATE tiles SET hashes = zeroblob(length(hashes))"),),
    "its checkpoint: the text, the signature, or all of it": (
        sql("UPDATE checkpoints SET note = replace(note, 'unresolved=0', 'unresolved=1')"),
        sql("UPDATE checkpoints SET note = substr(note, 1, length(note) - 9) || 'AAAAAAA=' || char(10)"),
        sql("DELETE FROM checkpoints"),
    ),
    "where it begins or ends": (
        sql("DELETE FROM meta WHERE key = 'segment_end'"),
        sql("UPDATE meta SET value = json_set(value, '$.intents', 99) WHERE key = 'segment_end'"),
        sql("UPDATE meta SET value = replace(value, '\"open\":0', '\"open\":1') WHERE key = 'sealed'"),
    ),
    "whether a kept value is a masked one, in a segment before the last": (
        sql("UPDATE kept_values SET kind = 'masked'", number=0),
    ),
    "any other byte of the last segment": (sql("UPDATE kept_values SET kind = 'masked'"), sql("PRAGMA user_version=7")),
    "a segment of another ledger in its place": (from_elsewhere(0), from_elsewhere(1)),
    "a segment that is missing": (without(0), without(1)),
    "two segments, each under the name of the other": (exchanged,),
}  # fmt: skip


def checked(*arguments: object) -> tuple[int, str]:
    """The exit code of `gateway ledger verify`, and what it prints."""
    with redirect_stdout(StringIO()) as told, redirect_stderr(StringIO()):
        code = main([str(one) for one in arguments])
    return code, told.getvalue()


def _found(*arguments: object) -> bool:
    """True if `gateway ledger verify` finds a change."""
    code, told = checked(*arguments)
    assert code in (Exit.OK, Exit.CHECK_FAILED), told
    assert (code == Exit.CHECK_FAILED) == ("is broken" in told)
    return code != Exit.OK
