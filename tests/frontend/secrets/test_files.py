import codecs
import json
import os
import resource
import traceback
from collections.abc import Iterator
from pathlib import Path

import pyrage
import pytest

from frontend.secrets import files
from frontend.secrets.files import SecretFile, SecretMissing, SecretsUnavailable
from ipc.plan import SecretUse
from ipc.settings import SecretSettings

CANARY = "canary-7f3a9c"
TOKEN = SecretUse("upstream_token")
OPTIONAL = SecretUse("bank_token", required=False)


def write_private(path: Path, data: bytes | str, mode: int = 0o600) -> Path:
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    path.chmod(mode)
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_private(tmp_path / "secrets.json", json.dumps({"upstream_token": CANARY, "other": "x"}))


def secrets_of(path: Path, **settings: str) -> SecretFile:
    return SecretFile(SecretSettings(file=str(path), **settings))


def test_a_plan_gets_the_secrets_it_declares_and_no_others(file: Path) -> None:
    assert secrets_of(file).for_plan([TOKEN, OPTIONAL]) == {"upstream_token": CANARY}


def test_a_byte_order_mark_before_the_object_is_no_part_of_it(file: Path) -> None:
    write_private(file, codecs.BOM_UTF8 + file.read_bytes())
    assert secrets_of(file).for_plan([TOKEN]) == {"upstream_token": CANARY}


def test_a_plan_without_secrets_needs_no_file(tmp_path: Path) -> None:
    assert SecretFile(SecretSettings()).for_plan([]) == {}
    assert secrets_of(tmp_path / "absent").for_plan([]) == {}


def test_a_missing_required_secret_is_named(file: Path) -> None:
    with pytest.raises(SecretMissing, match="nowhere"):
        secrets_of(file).for_plan([SecretUse("nowhere")])
    with pytest.raises(SecretMissing, match="upstream_token"):
        SecretFile(SecretSettings()).for_plan([TOKEN])


def test_a_process_without_a_descriptor_left_says_so(file: Path) -> None:
    secrets, (soft, hard) = secrets_of(file), resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        with pytest.raises(SecretsUnavailable, match="Too many open files"):
            secrets.for_plan([TOKEN])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert secrets.for_plan([TOKEN]) == {"upstream_token": CANARY}


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666, 0o700 | 0o010])
def test_a_file_that_others_may_touch_is_refused(file: Path, mode: int) -> None:
    file.chmod(mode)
    with pytest.raises(SecretsUnavailable, match="0600"):
        secrets_of(file).for_plan([TOKEN])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_refused(file: Path) -> None:
    os.chown(file, 12345, -1)
    with pytest.raises(SecretsUnavailable, match="belongs to user id 12345"):
        secrets_of(file).for_plan([TOKEN])


def test_a_link_a_pipe_and_a_folder_are_refused(file: Path, tmp_path: Path) -> None:
    link, pipe, folder = tmp_path / "link", tmp_path / "pipe", tmp_path / "folder"
    link.symlink_to(file)
    os.mkfifo(pipe, 0o600)
    folder.mkdir(0o700)
    for path in (link, pipe, folder, tmp_path / "absent"):
        with pytest.raises(SecretsUnavailable):
            secrets_of(path).for_plan([TOKEN])


@pytest.mark.parametrize(
    "content",
    [
        b"", b"[]", b'"x"', b'{"a": 1}', b'{"a": null}', b'{"a": "x", "a": "y"}', b'{"a": "x"', b"\xff", b"[" * 100_000,
        b'{"a": "line\\nbreak"}', b'{"a": ""}', b'{"a": " x"}', b'{"a": "\\u00e9"}', b'{"a": {"b": "c"}}',
        b'{"a": "' + b"x" * 9000 + b'"}', b" " * 1_048_577,
    ],
)  # fmt: skip
def test_content_that_is_no_object_of_header_values_is_refused(tmp_path: Path, content: bytes) -> None:
    path = write_private(tmp_path / "secrets.json", content)
    with pytest.raises(SecretsUnavailable):
        secrets_of(path).for_plan([OPTIONAL])


def frames(error: BaseException | None) -> Iterator[str]:
    """Everything that a talkative log could print of an exception: texts, contexts, local variables."""
    while error is not None:
        yield repr(error) + str(vars(error))
        for frame, _ in traceback.walk_tb(error.__traceback__):
            if frame.f_code.co_filename == files.__file__:
                yield from map(repr, frame.f_locals.values())
        error = error.__context__


@pytest.mark.parametrize("content", [f'{{"upstream_token": "{CANARY}", broken', f'{{"upstream_token": "{CANARY}\\n"}}'])
def test_no_value_shows_when_content_is_refused(tmp_path: Path, content: str) -> None:
    secrets = secrets_of(write_private(tmp_path / "secrets.json", content))
    with pytest.raises(SecretsUnavailable) as refused:
        secrets.for_plan([TOKEN])
    assert not [text for text in frames(refused.value) if CANARY in text]


def test_no_value_shows_when_another_secret_is_missing(file: Path) -> None:
    secrets = secrets_of(file)
    with pytest.raises(SecretMissing) as missing:
        secrets.for_plan([TOKEN, SecretUse("nowhere")])
    assert not [text for text in frames(missing.value) if CANARY in text]
    assert CANARY not in repr(secrets) + str(secrets) + repr(vars(secrets))


def test_a_change_of_the_file_is_seen_at_once_and_else_after_thirty_seconds(file: Path) -> None:
    now = [0.0]
    secrets = SecretFile(SecretSettings(file=str(file)), lambda: now[0])
    assert secrets.for_plan([TOKEN])["upstream_token"] == CANARY
    before = file.stat()
    with file.open("r+b") as opened:
        opened.seek(file.read_bytes().index(CANARY.encode()))
        opened.write(CANARY.upper().encode())
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    now[0] = 29.9
    assert secrets.for_plan([TOKEN])["upstream_token"] == CANARY, "same time, inode and size: kept"
    now[0] = 30.0
    assert secrets.for_plan([TOKEN])["upstream_token"] == CANARY.upper()
    write_private(file, json.dumps({"upstream_token": "rotated"}))
    assert secrets.for_plan([TOKEN])["upstream_token"] == "rotated"
    file.unlink()
    with pytest.raises(SecretsUnavailable):
        secrets.for_plan([TOKEN])


def kubernetes(folder: Path, name: str, content: str) -> None:
    """Put a file in force as the kubelet does: a new folder, then a swap of the link `..data`."""
    (folder / name).mkdir()
    write_private(folder / name / "secrets.json", content, 0o440)
    (folder / "..data_tmp").symlink_to(name)
    (folder / "..data_tmp").rename(folder / "..data")


def test_secrets_of_kubernetes_are_read_and_a_swap_is_seen_at_once(tmp_path: Path) -> None:
    path = tmp_path / "secrets.json"
    kubernetes(tmp_path, "..2026_01", json.dumps({"upstream_token": CANARY}))
    path.symlink_to("..data/secrets.json")
    secrets = SecretFile(SecretSettings(file=str(path)), lambda: 0.0)
    assert secrets.for_plan([TOKEN])["upstream_token"] == CANARY
    kubernetes(tmp_path, "..2026_02", json.dumps({"upstream_token": "swapped"}))
    assert secrets.for_plan([TOKEN])["upstream_token"] == "swapped"
    (tmp_path / "..2026_02" / "secrets.json").chmod(0o444)
    with pytest.raises(SecretsUnavailable, match="mode 0444"):
        secrets.for_plan([TOKEN])


@pytest.mark.parametrize("armored", [False, True])
def test_an_age_file_is_decrypted_with_its_identity(tmp_path: Path, armored: bool) -> None:
    identity, other = pyrage.x25519.Identity.generate(), pyrage.x25519.Identity.generate()
    plain = json.dumps({"upstream_token": CANARY}).encode()
    encrypted = pyrage.encrypt(plain, [identity.to_public()], armored=armored)
    path = write_private(tmp_path / "secrets.age", encrypted)
    key = write_private(tmp_path / "identity", f"# created: today\n# public key: …\n{identity}\n")
    assert secrets_of(path, age_identity_file=str(key)).for_plan([TOKEN]) == {"upstream_token": CANARY}
    write_private(key, f"{other}\n")
    with pytest.raises(SecretsUnavailable, match="cannot be decrypted"):
        secrets_of(path, age_identity_file=str(key)).for_plan([TOKEN])


@pytest.mark.parametrize("content", ["", "junk", "AGE-SECRET-KEY-1BROKEN\n"])
def test_a_broken_age_identity_is_refused_without_showing_it(file: Path, tmp_path: Path, content: str) -> None:
    key = write_private(tmp_path / "identity", content)
    with pytest.raises(SecretsUnavailable, match="identity") as refused:
        secrets_of(file, age_identity_file=str(key)).for_plan([TOKEN])
    assert "BROKEN" not in str(refused.value)


def test_an_age_identity_that_others_may_read_is_refused(file: Path, tmp_path: Path) -> None:
    key = write_private(tmp_path / "identity", str(pyrage.x25519.Identity.generate()), 0o644)
    with pytest.raises(SecretsUnavailable, match="0600"):
        secrets_of(file, age_identity_file=str(key)).for_plan([TOKEN])


def test_values_in_memory_do_not_show() -> None:
    assert CANARY not in repr(files._Values({"a": CANARY}))
