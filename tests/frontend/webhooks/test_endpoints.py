"""Endpoints as a configuration names them, and their secrets."""

from pathlib import Path

import pytest

from frontend.webhooks.endpoints import key_in, open_endpoints
from frontend.webhooks.outcome import FAILED, AttemptOutcome
from ipc.backends.webhooks import SecretUnfit, key_of
from ipc.process.exits import Exit
from ipc.process.private_files import PrivateFileError
from tests.frontend.webhooks.samples import ECHO_AND_DIE, SECRET, hook
from tests.support.front_core import front_core


def private(path: Path, text: str | bytes, mode: int = 0o600) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    path.chmod(mode)
    return path


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("https://hooks.example", ("https", "hooks.example", None, "/")),
        ("https://hooks.example/", ("https", "hooks.example", None, "/")),
        ("http://hooks.example:8080/a/b;c?d=e&f=%2F", ("http", "hooks.example", 8080, "/a/b;c?d=e&f=%2F")),
        ("https://hooks.example:443?d", ("https", "hooks.example", 443, "/?d")),
        ("https://hooks.example//a", ("https", "hooks.example", None, "//a")),
    ],
)
def test_an_address_is_taken_apart_and_nothing_of_it_is_lost(url: str, parts: tuple[object, ...]) -> None:
    (one,) = open_endpoints([hook(url=url)])
    assert (one.scheme, one.host, one.port, one.target) == parts


def test_a_disabled_endpoint_is_none_and_its_secret_is_not_looked_at() -> None:
    assert open_endpoints([hook(disable=True, secret=None, secret_file="/nowhere")]) == ()


def test_pauses_are_those_of_the_list_and_then_its_last() -> None:
    (one,) = open_endpoints([hook(max_retries=4, retry_backoff_seconds=(1.0, 5.0))])
    assert [one.pause_after(attempt) for attempt in range(1, 7)] == [1.0, 5.0, 5.0, 5.0, None, None]
    (never,) = open_endpoints([hook(max_retries=0)])
    assert never.pause_after(1) is None


def test_a_secret_is_read_from_its_file_without_what_an_editor_adds(tmp_path: Path) -> None:
    file = private(tmp_path / "hook", f"\n{SECRET}\r\n")
    assert key_in(file) == key_of(SECRET)
    (one,) = open_endpoints([hook(secret=None, secret_file=str(file))])
    private(file, "another secret than before")
    assert one.key() == b"another secret than before"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("short", "the secret must have 16 characters or more."),
        ("", "the secret must be one line of printable ASCII, 512 characters at most."),
        ("two lines of\nsome secret", "the secret must be one line of printable ASCII, 512 characters at most."),
        ("whsec_AAAAAAAAAAAA", "the secret must be 16 bytes or more."),
        ("whsec_?AAAAAAAAAAAAAAAAAAAAAAAA", "the secret must have base64 after whsec_."),
        ("é" * 20, "must be a text of printable ASCII."),
        (b"\xff\xfe" * 20, "must be a text of printable ASCII."),
    ],
)
def test_a_file_with_another_content_is_refused_and_its_content_not_shown(
    tmp_path: Path, content: str | bytes, said: str
) -> None:
    file = private(tmp_path / "hook", content)
    with pytest.raises(PrivateFileError) as refused:
        open_endpoints([hook(secret=None, secret_file=str(file))])
    assert str(refused.value) == f"{file}: {said}"
    assert refused.value.exit_code == Exit.CONFIG


def test_a_file_that_others_can_read_or_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PrivateFileError, match="mode 0644 lets others in"):
        key_in(private(tmp_path / "hook", SECRET, 0o644))
    with pytest.raises(PrivateFileError, match="No such file"):
        key_in(tmp_path / "none")


def test_a_secret_of_the_configuration_itself_is_held_to_the_same() -> None:
    with pytest.raises(SecretUnfit):
        open_endpoints([hook(secret="short")])


def test_nothing_of_an_endpoint_shows_but_its_name() -> None:
    (one,) = open_endpoints([hook(headers={"authorization": "Bearer hush"})])
    for shown in (repr(one), str(one), f"{[one]}"):
        assert shown.strip("[]") == "<endpoint chat>"


async def test_a_try_of_an_endpoint_that_a_reload_has_taken_away_meanwhile_fails_and_says_why(tmp_path: Path) -> None:
    async with front_core(tmp_path, *ECHO_AND_DIE) as core:
        outcome, _ = await core.services.webhooks.test("chat")
    assert outcome == AttemptOutcome(FAILED, None, "the endpoint is not configured any more")
