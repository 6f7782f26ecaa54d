"""The settings that a running gateway has in force, written down so that a file can be compared with them."""

import os
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest
from setproctitle import getproctitle, setproctitle

from ipc.process.exits import Exit
from ipc.settings import LimitSettings, OperatorSettings, Settings, WebhookSettings
from supervisor.refusal import Refused
from supervisor.settings.in_force import FILE_NAME, compare_with_running, forget_at_end, keep_in_force
from supervisor.state_dir import hold_state_dir

HOOK = WebhookSettings("w", "https://hooks.gateway.test", secret="hidden-1")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """The state folder of a gateway that this process plays."""
    return Settings(str(tmp_path), "http://gateway.test", webhooks=(HOOK,))


@pytest.fixture
def cleanup(settings: Settings) -> ExitStack:
    """Ends the gateway."""
    before = getproctitle()
    stack = ExitStack()
    hold_state_dir(Path(settings.state_dir), stack, is_mended=True)
    stack.callback(setproctitle, before)
    setproctitle("gateway: supervisor")
    forget_at_end(Path(settings.state_dir), stack)
    keep_in_force(Path(settings.state_dir), settings)
    return stack


def test_settings_for_a_reload_and_for_a_restart_are_distinguished(settings: Settings, cleanup: ExitStack) -> None:
    with cleanup:
        same = compare_with_running(settings)
        assert (same.reload, same.restart) == ((), ())
        other = msgspec.structs.replace(
            settings, operators=(OperatorSettings("ann"),), limits=LimitSettings(max_in_flight=1),
            webhooks=(msgspec.structs.replace(HOOK, secret="hidden-2"),),
        )  # fmt: skip
        waits = compare_with_running(other)
        assert (waits.reload, waits.restart) == (("operators", "webhooks"), ("limits.max_in_flight",))


def test_the_file_is_private_and_holds_neither_values_nor_what_another_gateway_would_write_of_them(
    settings: Settings, cleanup: ExitStack
) -> None:
    with cleanup:
        path = Path(settings.state_dir) / FILE_NAME
        assert path.stat().st_mode & 0o777 == 0o600
        first = path.read_text()
        assert "hidden" not in first
        assert "gateway.test" not in first
        keep_in_force(path.parent, settings)
        one, other = (msgspec.json.decode(text)["settings"] for text in (first, path.read_text()))
        assert not set(one.values()) & set(other.values())


def test_an_ended_or_killed_gateway_is_not_found(settings: Settings, cleanup: ExitStack) -> None:
    path = Path(settings.state_dir) / FILE_NAME
    content = path.read_bytes()
    cleanup.close()
    assert not path.exists()
    for left in (None, content, content.replace(str(os.getpid()).encode(), b"1"), b"{"):
        if left is not None:
            path.write_bytes(left)
        with pytest.raises(Refused, match="no gateway runs") as refused:
            compare_with_running(settings)
        assert refused.value.code == Exit.UNAVAILABLE
