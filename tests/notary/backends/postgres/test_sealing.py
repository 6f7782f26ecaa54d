"""A PostgreSQL is sealed as a file is."""

from pathlib import Path

import pytest

from tests.notary.running import Running
from tests.notary.samples import make_open, record_call
from tests.notary.sealing.sealed_ledger import keys_of, seal_age, verify, write_ages
from tests.support.asking import Told


def test_a_postgresql_and_its_segments_verify_together(notary: Running, tmp_path: Path) -> None:
    asked = make_open()
    notary.front.ask(asked)
    write_ages(notary)
    seal_age(notary, tmp_path / "segments", 1)
    ledger = notary.settings.ledger
    arguments = [ledger.url, "--segments", tmp_path / "segments", "--keys", keys_of(notary, tmp_path / "keys.json")]
    arguments += ["--password-file", ledger.password_file] if ledger.password_file is not None else []
    ran = verify(*arguments)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    seal_age(notary, tmp_path / "segments", 2)
    front = notary.start()
    record_call(front)
    with pytest.raises(Told, match="refused"):
        front.ask(make_open(intent_id=asked.intent_id))
    with pytest.raises(Told, match="refused"):
        front.answer(front.send(make_open(), make_open(intent_id=asked.intent_id))[1])
    notary.stop()
    assert verify(*arguments).returncode == 0
