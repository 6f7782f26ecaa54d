"""Command lines of `gateway` that are refused before anything is started, without a process of their own."""

import os
from typing import Any

import pytest

from supervisor.cli import command_parser
from supervisor.refusal import Refused


def refusal(*arguments: str) -> Refused:
    """Why this command does not run. Nothing is executed in the place of this process if it would."""

    def executed(*words: Any) -> None:
        pytest.fail(f"{words} is executed")

    options = command_parser().parse_args(arguments)
    with pytest.MonkeyPatch.context() as patched, pytest.raises(Refused) as refused:
        patched.setattr(os, "execv", executed)
        options.run(options)
    return refused.value
