"""`python -m notary.signing.make_keys`: its function, and the process it is where that matters."""

import json
import os
import stat
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import jwt
import pytest

from ipc.process.exits import Exit
from ipc.process.private_files import write_private
from notary.signing.keyfiles import load_ed25519, load_p256
from notary.signing.make_keys import main
from tests.support.proofs import Key, b64

FILES = (
    "keys/lease.pem", "keys/grant.pem", "keys/receipt.pem", "receipt-keys.jwks.json", "operator.pem",
    "keys/checkpoint.pem", "checkpoint-keys.jwks.json",
)  # fmt: skip
COMMAND = [sys.executable, "-m", "notary.signing.make_keys"]
DEADLINE = 120.0


class Done(NamedTuple):
    """The result of a run of the command."""

    returncode: int
    stdout: str
    stderr: str


def run(folder: Path) -> Done:
    """The command in this process."""
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        code = main(["--state-dir", str(folder)])
    return Done(code, out.getvalue(), err.getvalue())


def process(*arguments: str) -> Done:
    """The command as a process of its own."""
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=DEADLINE, check=False)
    return Done(done.returncode, done.stdout, done.stderr)


def contents(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FILES}


def test_the_first_run_makes_everything_and_says_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "state"
    done = process("--state-dir", str(folder))
    assert (done.returncode, done.stderr) == (Exit.OK, "")
    (line,) = done.stdout.splitlines()
    assert json.loads(line) == {"operator_jkt": Key.from_pem_file(folder / "operator.pem").jkt}
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert files == set(FILES)
    assert {stat.S_IMODE((folder / name).stat().st_mode) for name in FILES} == {0o600}
    assert {stat.S_IMODE(path.stat().st_mode) for path in (folder, folder / "keys")} == {0o700}
    load_p256(folder / "keys/lease.pem")
    load_p256(folder / "keys/grant.pem")


def test_the_published_receipt_key_verifies_what_the_private_one_signs(tmp_path: Path) -> None:
    assert run(tmp_path).returncode == Exit.OK
    (published,) = json.loads((tmp_path / "receipt-keys.jwks.json").read_bytes())["keys"]
    private = load_ed25519(tmp_path / "keys/receipt.pem")
    assert set(published) == {"kty", "crv", "x", "kid", "use", "alg", "created_at"}
    assert published["x"] == b64(private.public_key().public_bytes_raw())
    assert (published["kty"], published["crv"], published["alg"], published["use"]) == (
        "OKP",
        "Ed25519",
        "EdDSA",
        "sig",
    )
    token = jwt.encode({"a": 1}, private, "EdDSA")
    assert jwt.decode(token, jwt.PyJWK(published), ["EdDSA"]) == {"a": 1}


def test_a_second_run_changes_nothing_and_says_the_same(tmp_path: Path) -> None:
    first, before = process("--state-dir", str(tmp_path)), contents(tmp_path)
    second = run(tmp_path)
    assert second.stdout == first.stdout
    assert contents(tmp_path) == before


@pytest.mark.parametrize("missing", FILES)
def test_missing_keys_are_made_and_existing_ones_are_kept(tmp_path: Path, missing: str) -> None:
    run(tmp_path)
    before = contents(tmp_path)
    (tmp_path / missing).unlink()
    assert run(tmp_path).returncode == Exit.OK
    after = contents(tmp_path)
    changed = {name for name in FILES if after[name] != before[name]}
    # A new key joins its set; the set itself, made again from the same key, is the same.
    expected: dict[str, set[str]] = {}
    for purpose in ("receipt", "checkpoint"):
        key, key_set = f"keys/{purpose}.pem", f"{purpose}-keys.jwks.json"
        expected |= {key: {key, key_set}, key_set: set()}
    assert changed == expected.get(missing, {missing})


def test_the_set_of_receipt_keys_keeps_its_history(tmp_path: Path) -> None:
    for _ in range(3):
        assert run(tmp_path).returncode == Exit.OK
        (tmp_path / "keys/receipt.pem").unlink()
    keys = json.loads((tmp_path / "receipt-keys.jwks.json").read_bytes())["keys"]
    assert len({key["kid"] for key in keys}) == len(keys) == 3
    assert ["retired_at" in key for key in keys] == [True, True, False]


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_others_may_read_is_refused_and_left_alone(tmp_path: Path, name: str) -> None:
    run(tmp_path)
    before = contents(tmp_path)
    (tmp_path / name).chmod(0o644)
    done = process("--state-dir", str(tmp_path)) if name == FILES[0] else run(tmp_path)
    assert (done.returncode, done.stdout) == (Exit.CONFIG, "")
    assert done.stderr == f"{tmp_path / name}: mode 0644 lets others in. Use chmod 0600.\n"
    assert contents(tmp_path) == before


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_holds_something_else_is_refused_and_left_alone(tmp_path: Path, name: str) -> None:
    run(tmp_path)
    write_private(tmp_path / name, b"[]")
    done = run(tmp_path)
    assert done.returncode == Exit.CONFIG
    assert done.stderr.startswith(f"{tmp_path / name}: is not a")
    assert done.stderr.count("\n") == 1
    assert (tmp_path / name).read_bytes() == b"[]"


@pytest.mark.parametrize(
    "text", ["", "{", "null", '{"keys": {}}', '{"keys": [1]}', "{}", '"\\ud800"', '{"keys":[' + "[" * 3000]
)
def test_a_malformed_key_set_is_refused_and_left_alone(tmp_path: Path, text: str) -> None:
    run(tmp_path)
    write_private(tmp_path / "receipt-keys.jwks.json", text.encode())
    assert main(["--state-dir", str(tmp_path)]) == Exit.CONFIG
    assert (tmp_path / "receipt-keys.jwks.json").read_text() == text


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("name", [*FILES, "keys", "."])
def test_a_file_or_folder_of_another_user_is_refused(tmp_path: Path, name: str) -> None:
    run(tmp_path)
    os.chown(tmp_path / name, 65534, 65534)
    done = run(tmp_path)
    assert (done.returncode, done.stdout) == (Exit.NO_PERMISSION, "")
    assert "belongs to user id 65534" in done.stderr


def test_others_may_look_into_the_state_directory_and_not_into_the_folder_of_keys(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    assert run(tmp_path).returncode == Exit.OK
    (tmp_path / "keys").chmod(0o750)
    done = run(tmp_path)
    assert (done.returncode, done.stdout) == (Exit.CONFIG, "")
    assert done.stderr == f"{tmp_path / 'keys'}: mode 0750 lets others in. Use chmod 0700.\n"


def test_a_state_directory_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        done = run(folder)
        assert (done.returncode, done.stdout) == (Exit.NO_PERMISSION, "")
        assert done.stderr.count("\n") == 1


def test_two_runs_at_once_agree_or_one_steps_back(tmp_path: Path) -> None:
    for attempt in range(5):
        folder = tmp_path / str(attempt)
        both = [
            subprocess.Popen(
                [*COMMAND, "--state-dir", str(folder)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
            for _ in range(2)
        ]
        answers = [(one.communicate(timeout=DEADLINE)[0], one.returncode) for one in both]
        said = {text for text, code in answers if code == Exit.OK}
        assert {code for _, code in answers} <= {Exit.OK, Exit.LOCKED}
        assert said == {
            json.dumps({"operator_jkt": Key.from_pem_file(folder / "operator.pem").jkt}, separators=(",", ":")) + "\n"
        }
        assert run(folder).stdout in said


def test_a_command_line_that_does_not_parse_is_usage() -> None:
    assert process().returncode == Exit.USAGE
