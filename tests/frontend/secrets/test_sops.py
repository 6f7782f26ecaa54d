"""Files made by the real sops and age, and the refusal of a file that was changed in any way."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from frontend.secrets.files import SecretFile, SecretsUnavailable
from ipc.plan import SecretUse
from ipc.settings import SecretSettings
from tests.support.go_programs import go_program
from tests.support.sops import encrypted_by_sops, new_identity

CANARY = "canary-51bd0e"
PLAIN = {"upstream_token": CANARY, "bank_token": "bank-77"}
USES = [SecretUse("upstream_token"), SecretUse("bank_token", required=False)]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an identity and a file that sops has encrypted to it."""
    folder: Path = tmp_path_factory.mktemp("sops")
    recipient = new_identity(folder / "identity")
    encrypted_by_sops(folder / "secrets.json", PLAIN, recipient)
    return folder


def opened(file: Path, identity: Path) -> dict[str, str]:
    return SecretFile(SecretSettings(file=str(file), age_identity_file=str(identity))).for_plan(USES)


def test_a_file_of_sops_is_opened_with_its_age_identity(made: Path) -> None:
    assert CANARY not in (made / "secrets.json").read_text()
    assert opened(made / "secrets.json", made / "identity") == PLAIN


@pytest.mark.parametrize("option", ["--mac-only-encrypted", "--encrypted-regex=.*"])
def test_ways_to_encrypt_are_told_by_the_file(made: Path, tmp_path: Path, option: str) -> None:
    recipient = new_identity(tmp_path / "identity")
    encrypted_by_sops(tmp_path / "secrets.json", PLAIN, recipient, option)
    assert opened(tmp_path / "secrets.json", tmp_path / "identity") == PLAIN
    with pytest.raises(SecretsUnavailable, match="not encrypted to the identity"):
        opened(tmp_path / "secrets.json", made / "identity")


def test_a_file_of_the_real_age_is_opened_too(made: Path, tmp_path: Path) -> None:
    recipient = new_identity(tmp_path / "identity")
    command = [go_program("age"), "--armor", "-r", recipient, "-o", str(tmp_path / "secrets.age")]
    subprocess.run(command, input=json.dumps(PLAIN).encode(), check=True, timeout=60)
    (tmp_path / "secrets.age").chmod(0o600)
    assert opened(tmp_path / "secrets.age", tmp_path / "identity") == PLAIN


def _moved(document: dict[str, Any]) -> None:
    document["upstream_token"], document["bank_token"] = document["bank_token"], document["upstream_token"]


def _reordered(document: dict[str, Any]) -> None:
    document["upstream_token"] = document.pop("upstream_token")


SPOILT: list[tuple[str, Callable[[dict[str, Any]], object], str]] = [
    ("a value that stands in another's place", _moved, "for this place"),
    ("another order", _reordered, "MAC does not fit"),
    ("a value in clear", lambda one: one.update(upstream_token=CANARY), "for this place"),
    ("a value more in clear", lambda one: one.update(more=CANARY), "for this place"),
    ("a value less", lambda one: one.pop("bank_token"), "MAC does not fit"),
    ("a number", lambda one: one.update(upstream_token=3), "for this place"),
    ("another kind", lambda one: one.update(bank_token=one["bank_token"].replace("type:str", "type:int")), "for this"),
    ("broken base64", lambda one: one.update(bank_token=one["bank_token"].replace("data:", "data:=")), "for this"),
    ("another time", lambda one: one["sops"].update(lastmodified="2020-01-01T00:00:00Z"), "MAC does not fit"),
    ("no MAC", lambda one: one["sops"].pop("mac"), "no lastmodified or no mac"),
    ("the MAC of another scope", lambda one: one["sops"].update(mac_only_encrypted=True), "MAC does not fit"),
    ("no recipient", lambda one: one["sops"].update(age=[]), "no age recipient"),
    ("recipients without end", lambda one: one["sops"].update(age=one["sops"]["age"] * 65), "too many"),
    ("a key that is none", lambda one: one["sops"]["age"][0].update(enc="-----BEGIN"), "not encrypted to the identity"),
    ("a key that is no text", lambda one: one["sops"]["age"][0].update(enc="\ud800"), "not encrypted to the identity"),
    ("key groups", lambda one: one["sops"].update(key_groups=[{"age": one["sops"]["age"]}]), "key groups"),
    ("no object", lambda one: one.update(sops="x"), "not an object"),
    ("no sops", lambda one: one.pop("sops"), "nor a SOPS file"),
]


@pytest.mark.parametrize(("spoil", "said"), [row[1:] for row in SPOILT], ids=[row[0] for row in SPOILT])
def test_a_file_that_was_changed_is_refused_whole_and_shows_nothing(
    made: Path, tmp_path: Path, spoil: Callable[[dict[str, Any]], object], said: str
) -> None:
    document = json.loads((made / "secrets.json").read_text())
    spoil(document)
    file = tmp_path / "secrets.json"
    file.write_text(json.dumps(document))
    file.chmod(0o600)
    with pytest.raises(SecretsUnavailable, match=said) as refused:
        opened(file, made / "identity")
    assert CANARY not in str(refused.value)


def test_a_file_is_refused_however_much_of_it_is_written(made: Path, tmp_path: Path) -> None:
    whole = (made / "secrets.json").read_bytes().rstrip()
    file = tmp_path / "secrets.json"
    for length in range(0, len(whole), 97):
        file.write_bytes(whole[:length])
        file.chmod(0o600)
        with pytest.raises(SecretsUnavailable):
            opened(file, made / "identity")


def test_a_sops_file_without_an_identity_is_named_as_what_it_is(made: Path) -> None:
    with pytest.raises(SecretsUnavailable, match=r"secrets\.age_identity_file"):
        SecretFile(SecretSettings(file=str(made / "secrets.json"))).for_plan(USES)
