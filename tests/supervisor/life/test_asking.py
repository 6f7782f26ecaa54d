"""The message of a command whose gateway closes the connection without an answer."""

import socket
import threading
from pathlib import Path

import pytest

from ipc.process.exits import Exit
from supervisor.life.asking import NAME, ask_gateway
from supervisor.refusal import Refused

ROUNDS = 300
"""Closed before the question, while it is written, and after it: each comes often enough in so many."""


def test_a_connection_that_is_closed_unasked_is_a_refusal_whether_or_not_the_question_was_written(
    tmp_path: Path,
) -> None:  # fmt: skip
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / NAME))
        listener.listen(8)

        def hang_up() -> None:
            for _ in range(ROUNDS):
                listener.accept()[0].close()

        thread = threading.Thread(target=hang_up, daemon=True)
        thread.start()
        for _ in range(ROUNDS):
            with pytest.raises(Refused, match="may not be asked") as refused:
                ask_gateway(tmp_path, "status")
            assert refused.value.code == Exit.NO_PERMISSION
        thread.join(60)
