"""A PostgreSQL is sealed as a file is."""

from pathlib import Path

import pytest

from notary.sealing.copying import copy
from tests.notary.running import Running
from tests.notary.samples import NOW, make_open, record_call
from tests.notary.sealing.sealed_ledger import AGE, asked, keys_of, seal_age, verify, write_ages, write_calls
from tests.support.asking import Told
from tests.support.gateway import wait_for


def check(notary: Running, folder: Path) -> None:
    """The whole log verifies."""
    ledger = notary.settings.ledger
    arguments = [ledger.url, "--segments", folder / "segments", "--keys", keys_of(notary, folder / "keys.json")]
    arguments += ["--password-file", ledger.password_file] if ledger.password_file is not None else []
    ran = verify(*arguments)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_a_postgresql_and_its_segments_verify_together(notary: Running, tmp_path: Path) -> None:
    asked = make_open()
    notary.front.ask(asked)
    write_ages(notary)
    seal_age(notary, tmp_path / "segments", 1)
    check(notary, tmp_path)
    seal_age(notary, tmp_path / "segments", 2)
    front = notary.start()
    record_call(front)
    with pytest.raises(Told, match="refused"):
        front.ask(make_open(intent_id=asked.intent_id))
    with pytest.raises(Told, match="refused"):
        front.answer(front.send(make_open(), make_open(intent_id=asked.intent_id))[1])
    notary.stop()
    check(notary, tmp_path)


def test_a_postgresql_is_sealed_while_its_gateway_serves(notary: Running, tmp_path: Path) -> None:
    for age in range(3):
        write_calls(notary, NOW + age * AGE)
    notary.clock.time = NOW + 10 * AGE
    sealed = copy(notary.settings, NOW + AGE, tmp_path / "segments", "").sealed
    assert asked(notary, sealed).problem is None
    record_call(notary.front)
    wait_for(lambda: not asked(notary, sealed).left, "the deletion of sealed rows")
    notary.stop()
    check(notary, tmp_path)
