"""The completion of `gateway` in a shell."""

import shutil
import subprocess

import pytest

from supervisor.cli import main


def completed(script: str, *words: str) -> set[str]:
    """The words that bash offers in place of the last of these."""
    typed = " ".join(f"'{word}'" for word in ("gateway", *words))
    asks = f"{script}\nCOMP_WORDS=({typed}); COMP_CWORD={len(words)}; _gateway; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(["bash", "-c", asks], capture_output=True, text=True, timeout=120, check=True)
    return set(done.stdout.split())


def test_bash_completes_commands_their_commands_and_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    assert {"dev", "ledger", "completion", "--version"} <= completed(script, "")
    assert completed(script, "led") == {"ledger"}
    assert "verify" in completed(script, "ledger", "")
    assert "--checkpoint" in completed(script, "ledger", "verify", "somewhere", "--che")
    assert completed(script, "completion", "") == {"bash", "zsh", "fish", "--help"}


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_a_script_that_they_parse(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "ledger" in script
    if shutil.which(shell) is not None:
        subprocess.run([shell, "-n"], input=script, text=True, timeout=120, check=True)
