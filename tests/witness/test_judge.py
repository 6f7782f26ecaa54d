"""The checkpoints that a witness cosigns, and its answers to all other requests."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from gateway_client.evidence.notes import WITNESS, Note
from gateway_client.evidence.notes import VerifierKey as SdkKey

from tests.support.logs import capture_logs
from tests.support.logs_of_others import ANOTHER_ROOT, PlayedLog
from witness.folder import OwnKey, held, make_key, read_records, write_record
from witness.judge import SIZE_TYPE, Judge, Said

NOW = 1_790_000_000.0
LOG = PlayedLog()
THREE = LOG.grown(3)
SEVEN = THREE.grown(4)
FORKED = THREE.grown(4, "other")


class Witness:
    """One witness in a folder; opened again, it knows what the folder says."""

    def __init__(self, folder: Path, logs: tuple[PlayedLog, ...] = (LOG,), **given: Any) -> None:
        self.folder = folder
        self.logs = logs
        self.given = given
        with held(folder):
            self.key: OwnKey = make_key(folder, "witness.example/w")
        self.open()

    def open(self) -> None:
        keys = {one.origin: [Ed25519PublicKey.from_public_bytes(one.key.public)] for one in self.logs}
        self.judge = Judge(self.folder, self.key, keys, read_records(self.folder, keys), lambda: NOW, **self.given)

    async def says(self, body: bytes) -> Said:
        return await self.judge.add_checkpoint(body)

    async def status(self, body: bytes) -> int:
        return (await self.says(body)).status

    def check(self, log: PlayedLog, said: Said) -> None:
        """The answer is this witness's cosignature of the log as it is."""
        assert said.status == 200
        note = Note.parse(log.note() + said.body)
        assert note.check_cosignature(SdkKey.parse(self.key.public.text, WITNESS)) == "2026-09-21T14:13:20Z"


@pytest.fixture
def witness(tmp_path: Path) -> Witness:
    return Witness(tmp_path / "w")


def conflict(size: int) -> Said:
    return Said(409, f"{size}\n", SIZE_TYPE)


async def test_a_log_is_cosigned_as_long_as_it_continues_what_was_cosigned(witness: Witness) -> None:
    for old, log in ((0, THREE), (3, SEVEN), (7, SEVEN), (7, SEVEN.grown(1))):
        witness.check(log, await witness.says(log.request(old)))
        witness.open()


async def test_whoever_does_not_know_what_was_cosigned_is_told(witness: Witness) -> None:
    assert await witness.says(THREE.request(1)) == conflict(0)
    await witness.says(THREE.request(0))
    assert await witness.says(SEVEN.request(0)) == conflict(3)
    assert await witness.says(SEVEN.request(5)) == conflict(3)
    witness.check(SEVEN, await witness.says(SEVEN.request(3)))


@pytest.mark.parametrize(
    ("request_of", "status"),
    [
        (lambda: FORKED.request(7), 409),  # of the same size
        (lambda: THREE.request(7), 400),  # smaller, and it says that it was larger
        (lambda: THREE.request(3), 409),  # smaller
        (lambda: FORKED.grown(1).request(7), 422),
        (lambda: SEVEN.grown(1).request(7, proof=[]), 422),
        (lambda: SEVEN.grown(1).request(7, proof=[b"x" * 32] * 4), 422),
        (lambda: SEVEN.request(7, proof=[b"x" * 32]), 422),
        (lambda: SEVEN.request(7, note=SEVEN.note(ANOTHER_ROOT)), 409),
        (lambda: PlayedLog("log.example/b").grown(1).request(0), 404),
        (lambda: PlayedLog(seed=9).grown(8).request(7), 403),
        (lambda: b"old 7\n\nnothing", 400),
    ],
)
async def test_nothing_else_is_cosigned_or_remembered(
    witness: Witness, request_of: Callable[[], bytes], status: int
) -> None:
    await witness.says(SEVEN.request(0))
    before = read_records(witness.folder, [LOG.origin])
    assert await witness.status(request_of()) == status
    assert read_records(witness.folder, [LOG.origin]) == before
    witness.check(SEVEN.grown(2), await witness.says(SEVEN.grown(2).request(7)))


async def test_an_empty_log_has_one_root(witness: Witness) -> None:
    assert await witness.status(LOG.request(0, note=LOG.note(ANOTHER_ROOT))) == 422
    witness.check(LOG, await witness.says(LOG.request(0)))
    witness.check(THREE, await witness.says(THREE.request(0)))


async def test_logs_are_told_apart_by_their_origin(tmp_path: Path) -> None:
    other = PlayedLog("log.example/b", seed=4)
    witness = Witness(tmp_path / "w", (LOG, other))
    for log in (SEVEN, other.grown(2)):
        witness.check(log, await witness.says(log.request(0)))
    witness.open()
    assert await witness.says(other.grown(3).request(0)) == conflict(2)
    assert await witness.says(SEVEN.request(0)) == conflict(7)


async def test_what_could_not_be_written_is_not_cosigned(tmp_path: Path) -> None:
    fails = [True]

    def write(folder: Path, record: Any) -> None:
        if fails[0]:
            raise OSError(28, "No space left on device")
        write_record(folder, record)

    witness = Witness(tmp_path / "w", write=write)
    assert await witness.status(THREE.request(0)) == 503
    assert await witness.says(SEVEN.request(3)) == conflict(0)
    fails[0] = False
    witness.check(FORKED, await witness.says(FORKED.request(0)))


async def test_of_two_trees_that_are_asked_for_at_once_one_is_cosigned(tmp_path: Path) -> None:
    """Both continue what is known, and the first is still on its way to the disk when the second comes."""
    waiting, entered = trio.Event(), trio.Event()
    token = trio.lowlevel.current_trio_token()

    def write(folder: Path, record: Any) -> None:
        token.run_sync_soon(entered.set)
        trio.from_thread.run(waiting.wait)
        write_record(folder, record)

    witness = Witness(tmp_path / "w", write=write)
    said: list[Said] = []

    async def ask(log: PlayedLog) -> None:
        said.append(await witness.says(log.request(0)))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask, SEVEN)
        nursery.start_soon(ask, FORKED)
        await entered.wait()
        await trio.testing.wait_all_tasks_blocked()
        waiting.set()
    assert sorted(one.status for one in said) == [200, 409]


async def test_a_log_that_is_not_what_it_was_is_said_with_both_trees_and_not_for_ever(witness: Witness) -> None:
    await witness.says(SEVEN.request(0))
    with capture_logs() as logs:
        for _ in range(5):
            await witness.says(FORKED.request(7))
    (line,) = [one for one in logs if one["event"] == "a log is not what it was"]
    assert (line["origin"], line["size"], line["known_size"], line["note"]) == (LOG.origin, 7, 7, FORKED.note())
    assert line["root"] != line["known_root"]
