"""`[[evidence.witnesses]]` in the configuration."""

import pytest

from ipc.keys.verifier_keys import LOG, WITNESS, VerifierKey
from ipc.settings import EvidenceSettings, WitnessSettings
from supervisor.settings.config import Loaded
from supervisor.settings.sections.witnesses import MAX_WITNESSES
from tests.supervisor.settings.parsed import checked, with_rows

NAME, URL = 'name = "city"', 'url = "https://witness.example/v1/"'


def key_text(number: int = 1, kind: int = WITNESS) -> str:
    return VerifierKey("witness.example/w", kind, bytes([number]) * 32).text


KEY = f'key = "{key_text()}"'


def loaded(*tables: str, more: str = "") -> Loaded:
    return checked(with_rows("evidence.witnesses", tables, more))


def test_a_witness_needs_a_name_an_address_and_a_key_and_has_the_documented_defaults() -> None:
    settings = loaded("\n".join([NAME, URL, KEY])).settings
    assert settings is not None
    witness = WitnessSettings("city", "https://witness.example/v1", key_text(), 10.0, False)
    assert settings.evidence == EvidenceSettings((witness,), 10.0)
    assert loaded().settings is not None


def test_everything_else_may_be_said() -> None:
    table = "\n".join([NAME, 'url = "http://w.example:81"', KEY, "timeout_seconds = 2.5", "private_network = true"])
    settings = loaded(table, more="[evidence]\nwitness_interval_seconds = 60\n").settings
    assert settings is not None
    (one,) = settings.evidence.witnesses
    assert (one.url, one.timeout_seconds, one.private_network) == ("http://w.example:81", 2.5, True)
    assert settings.evidence.witness_interval_seconds == 60


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([URL, KEY], "evidence.witnesses[0].name: is missing"),
        ([NAME, KEY], "evidence.witnesses[0].url: is missing"),
        ([NAME, URL], "evidence.witnesses[0].key: is missing"),
        ([NAME, 'url = "https://witness.example/?a=b"', KEY], "must hold no query"),
        ([NAME, 'url = "https://10.0.0.1/"', KEY], "must name its host by a name"),
        ([NAME, 'url = "ftp://witness.example/"', KEY], "must be an http or https URL"),
        ([NAME, URL, f'key = "{key_text(kind=LOG)}"'], "must be a verifier key"),
        ([NAME, URL, f'key = " {key_text()}"'], "must be a verifier key"),
        ([NAME, URL, "key = 5"], "must be a verifier key"),
        ([NAME, URL, KEY.replace("witness.example/w", "witness.example/x")], "its id does not belong"),
        ([NAME, URL, KEY, "timeout_seconds = 0"], "timeout_seconds"),
        ([NAME, URL, KEY, 'private_network = "yes"'], "private_network"),
        ([NAME, URL, KEY, "timeout = 5"], 'unknown key "timeout" in [evidence.witnesses[0]]'),
    ],
)
def test_an_invalid_witness_is_named_with_its_place(lines: list[str], said: str) -> None:
    (problem,) = loaded("\n".join(lines)).problems
    assert said in problem.text
    assert problem.line > 0


def test_no_witness_is_there_twice_and_none_beyond_the_most() -> None:
    tables = [f'name = "w{number}"\n{URL}\nkey = "{key_text(number)}"' for number in range(MAX_WITNESSES + 1)]
    assert [problem.text for problem in loaded(*tables).problems] == [
        f"evidence.witnesses: {MAX_WITNESSES + 1} witnesses, and {MAX_WITNESSES} are the most."
    ]
    twice = [problem.text for problem in loaded(tables[0], tables[0]).problems]
    assert twice == ["evidence.witnesses[1].name: is there twice.", "evidence.witnesses[1].key: is there twice."]
