"""Command lines of `gateway` that are refused before anything is started, without a process of their own."""

import os
from typing import Any

import pytest

from supervisor.cli import command_parser
from supervisor.refusal import Refused


def refusal(*arguments: str) -> Refused:
    """The refusal of this command. A command that runs fails the test, and does not replace this process."""

    def executed(*words: Any) -> None:
        pytest.fail(f"{words} is executed")

    options = command_parser().parse_args(arguments)
    with pytest.MonkeyPatch.context() as patched, pytest.raises(Refused) as refused:
        patched.setattr(os, "execv", executed)
        options.run(options)
    return refused.value
