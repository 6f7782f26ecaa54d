"""The witness's decision on a checkpoint: the one place that decides whether it is cosigned.

Guarantees that of two trees of one log that are not consistent at most one is ever cosigned, whatever is asked at the
same time and wherever the process is killed: requests for one log take turns, and the record of a tree is durable
before its cosignature exists.
"""

import time
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
import trio
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from ipc.process.logs import log
from ipc.process.private_files import PrivateFileError
from notary.tree.checkpoint import NoteRefused
from notary.tree.cosignatures import cosign
from notary.tree.merkle import EMPTY_ROOT, ProofRefused, check_consistency
from notary.tree.notes import opened
from witness.folder import CosignedTree, OwnKey, write_record
from witness.submissions import Submission, parse

SIZE_TYPE: Final = "text/x.tlog.size"
TEXT_TYPE: Final = "text/plain; charset=utf-8"
TURN_SECONDS: Final = 10.0
"""How long a request waits for those of the same log that came before."""
SAY_AGAIN_SECONDS: Final = 60.0
"""Between two lines about one log that is not consistent."""

LogKeys = Mapping[str, Sequence[Ed25519PublicKey]]
"""Origin of a log -> keys that sign its checkpoints."""


class Said(msgspec.Struct, frozen=True):
    """An answer."""

    status: int
    body: str
    content_type: str = TEXT_TYPE


class _NotCosigned(Exception):
    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.said = Said(status, f"{sentence}\n")


class Judge:
    """Decides for these logs. `records`: their records in the folder."""

    def __init__(
        self, folder: Path, key: OwnKey, logs: LogKeys, records: Mapping[str, CosignedTree],
        now: Callable[[], float] = time.time, write: Callable[[Path, CosignedTree], None] = write_record,
    ) -> None:  # fmt: skip
        self._folder = folder
        self._key = key
        self._logs = logs
        self._records = dict(records)
        self._turns = {origin: trio.Lock() for origin in logs}
        self._now = now
        self._write = write
        self._say_at: dict[str, float] = {}

    async def add_checkpoint(self, body: bytes) -> Said:
        """Cosign the checkpoint of a request, or say why not."""
        try:
            asked = parse(body)
            self._check_signed(asked)
        except NoteRefused as error:
            return Said(400, f"{error}\n")
        except _NotCosigned as refused:
            return refused.said
        turn = self._turns[asked.head.origin]
        with trio.move_on_after(TURN_SECONDS) as waiting:
            await turn.acquire()
        if waiting.cancelled_caught:
            return Said(503, "other requests of this log are under way\n")
        try:
            return await self._in_turn(asked)
        except _NotCosigned as refused:
            return refused.said
        finally:
            turn.release()

    def _check_signed(self, asked: Submission) -> None:
        origin = asked.head.origin
        if origin not in self._logs:
            raise _NotCosigned(404, "this witness does not know the log of that origin")
        try:
            opened(asked.note, {origin: self._logs[origin]})
        except NoteRefused:
            raise _NotCosigned(403, "no known key of that log has signed the checkpoint") from None

    async def _in_turn(self, asked: Submission) -> Said:
        head, known = asked.head, self._records.get(asked.head.origin)
        known_size = 0 if known is None else known.size
        if asked.old_size != known_size:
            if head.size < known_size:
                self._complain(asked, known, "a smaller tree than before")
            return Said(409, f"{known_size}\n", SIZE_TYPE)
        if known is not None and head.size == known.size and head.root != known.root_bytes:
            self._complain(asked, known, "another tree of the same size")
            return Said(409, f"{known_size}\n", SIZE_TYPE)
        self._check_continued(asked, known)
        if known is None or head.size > known.size:
            await self._remember(CosignedTree(head.origin, head.size, b64encode(head.root).decode(), asked.note))
        return Said(200, cosign(asked.text, self._key.name, self._key.private, int(self._now())))

    def _check_continued(self, asked: Submission, known: CosignedTree | None) -> None:
        head = asked.head
        old_root = EMPTY_ROOT if known is None else known.root_bytes
        try:
            if head.size == 0 and head.root != EMPTY_ROOT:
                raise ProofRefused("the tree of no entries has another root")
            check_consistency(asked.old_size, old_root, head.size, head.root, asked.proof)
        except ProofRefused as error:
            self._complain(asked, known, str(error))
            raise _NotCosigned(422, f"the checkpoint is not shown to continue the one before: {error}") from None

    async def _remember(self, record: CosignedTree) -> None:
        """SECURITY: nothing is signed unless this returned."""
        try:
            await trio.to_thread.run_sync(self._write, self._folder, record)
        except (PrivateFileError, OSError) as error:
            log.error("what was seen of a log could not be written: nothing is cosigned", cause=str(error))
            raise _NotCosigned(503, "the witness can't write down what it sees") from None
        self._records[record.origin] = record

    def _complain(self, asked: Submission, known: CosignedTree | None, why: str) -> None:
        """Both trees are signed by the log: the line is evidence. A few lines, however often it is asked."""
        head, now = asked.head, trio.current_time()
        if now < self._say_at.get(head.origin, now):
            return
        self._say_at[head.origin] = now + SAY_AGAIN_SECONDS
        log.error(
            "a log is not what it was", origin=head.origin, why=why, size=head.size, root=head.root.hex(),
            known_size=0 if known is None else known.size, known_root="" if known is None else known.root_bytes.hex(),
            note=asked.note,
        )  # fmt: skip
