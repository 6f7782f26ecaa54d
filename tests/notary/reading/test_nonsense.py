"""Damaged rows of a ledger, and damaged checkpoints that were kept: the check names them and goes on to its end."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from notary.sealing.segment import KEYS
from tests.notary.running import Running
from tests.notary.samples import make_note
from tests.notary.sealing.sealed_ledger import keys_of, verify

DEEP = "[" * 100_000
NONSENSE = {
    "a negative cut": ("sealed", '{"leaves":-1}'),
    "a cut beyond all numbers of rows": ("sealed", f'{{"events":{2**70}}}'),
    "a cut that is nested deeply": ("sealed", f'{{"x":{DEEP}'),
    "keys that are nested deeply": (KEYS, f'{{"receipts":{{"a":{DEEP}'),
    "a head that is nested deeply": ("head", f'{{"x":{DEEP}'),
    "a history that is nested deeply": ("history", f"[0,0,{DEEP}"),
}


@pytest.mark.parametrize("name", NONSENSE)
def test_nonsense_in_a_ledger_is_found(notary: Running, tmp_path: Path, name: str) -> None:
    notary.front.ask(make_note())
    notary.stop()
    notary.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", *NONSENSE[name])
    ran = verify(notary.path, "--keys", keys_of(notary, tmp_path / "keys.json"))
    assert (ran.returncode, "is broken" in ran.stdout) == (8, True), ran.stdout + ran.stderr


def test_keys_of_a_segment_that_are_none_are_found(notary: Running) -> None:
    notary.front.ask(make_note())
    notary.stop()
    with closing(sqlite3.connect(notary.path)) as ledger, ledger:
        rows = [(KEYS, '{"receipts":{},"checkpoints":[]}'), ("segment_end", '{"events":1}')]
        ledger.executemany("INSERT INTO meta (key, value) VALUES (?, ?)", rows)
    ran = verify(notary.path)
    assert (ran.returncode, "is damaged: not a JWKS" in ran.stdout) == (8, True), ran.stdout + ran.stderr


def test_a_kept_checkpoint_that_is_nested_deeply_is_none(notary: Running, tmp_path: Path) -> None:
    notary.front.ask(make_note())
    notary.stop()
    kept = tmp_path / "kept"
    kept.write_text(f'{{"checkpoint":{DEEP}')
    ran = verify(notary.path, "--keys", keys_of(notary, tmp_path / "keys.json"), "--checkpoint", kept)
    assert (ran.returncode, "holds no checkpoint" in ran.stderr) == (69, True), ran.stdout + ran.stderr
