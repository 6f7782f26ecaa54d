"""The policy of a dev gateway: made once, and never written over."""

import stat
from pathlib import Path

import pytest

from ipc.process.exits import Exit
from supervisor.dev.policy import own_policy
from supervisor.dev.settings import EXAMPLES
from supervisor.refusal import Refused

SHIPPED = EXAMPLES / "policy"


def test_the_first_start_copies_what_comes_with_this_version(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = own_policy(SHIPPED, tmp_path)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for name in ("data.json", "gateway.rego"):
        assert (folder / name).read_bytes() == (SHIPPED / name).read_bytes()
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600
    own_policy(SHIPPED, tmp_path)
    assert "its own" not in "".join(capfd.readouterr())


def test_existing_files_are_kept_and_different_rules_are_named(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = own_policy(SHIPPED, tmp_path)
    (folder / "data.json").write_text('{"policy_version": "granted"}')
    (folder / "gateway.rego").write_text("package gateway\n")
    own_policy(SHIPPED, tmp_path)
    assert (folder / "data.json").read_text() == '{"policy_version": "granted"}'
    assert (folder / "gateway.rego").read_text() == "package gateway\n"
    said = "".join(capfd.readouterr())
    assert "the policy folder has other rules than this version's" in said
    assert "data.json" not in said
    (folder / "gateway.rego").unlink()
    own_policy(SHIPPED, tmp_path)
    assert (folder / "gateway.rego").read_bytes() == (SHIPPED / "gateway.rego").read_bytes()


@pytest.mark.parametrize("obstacle", ["a file", "bytes"])
def test_a_file_that_can_not_be_made_or_read_is_one_sentence(tmp_path: Path, obstacle: str) -> None:
    if obstacle == "a file":
        (tmp_path / "policy").write_text("")
    else:
        (tmp_path / "policy").mkdir()
        (tmp_path / "policy" / "gateway.rego").write_bytes(b"\xff")
    with pytest.raises(Refused) as refused:
        own_policy(SHIPPED, tmp_path)
    told, code = refused.value.sentence, refused.value.code
    if obstacle == "a file":
        assert (code, f"policy folder {tmp_path / 'policy'} can't be made or read: " in told) == (
            Exit.NO_PERMISSION,
            True,
        )
    else:
        assert (code, told) == (Exit.CONFIG, f"{tmp_path / 'policy' / 'gateway.rego'} is not UTF-8.")


def test_rules_behind_a_dangling_link_are_not_replaced_by_those_that_are_shipped(tmp_path: Path) -> None:
    (tmp_path / "policy").mkdir()
    (tmp_path / "policy" / "gateway.rego").symlink_to("nowhere")
    with pytest.raises(Refused, match="can't be made or read"):
        own_policy(SHIPPED, tmp_path)
    assert (tmp_path / "policy" / "gateway.rego").is_symlink()
