"""Asks the gateway that runs with a state directory: one question over its control socket, one answer.

A refusal says in one sentence that no gateway runs, that it may not be asked, or that it does not answer.
"""

import json
import os
import socket
from pathlib import Path
from typing import Any, Final

from ipc.process.exits import Exit
from supervisor.refusal import Refused

NAME: Final = "control.sock"
QUESTION_SECONDS: Final = 5.0
ANSWER_SECONDS: Final = 150.0
"""A reload may take two minutes."""
SILENT_SECONDS: Final = 10.0
"""How long a gateway may take to answer."""
SLOW_SECONDS: Final = {"reload": ANSWER_SECONDS + QUESTION_SECONDS, "seal": 45.0}
"""How long it may take for a command word, where that is longer."""


def ask_gateway(state_dir: Path, word: str, **more: object) -> dict[str, Any]:
    """Send a command word, and `more` with it, to the gateway of this state directory and return its answer. Raises
    Refused."""
    seconds = SLOW_SECONDS.get(word, SILENT_SECONDS)
    try:
        folder = os.open(state_dir, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except PermissionError:
        raise _forbidden(state_dir) from None
    except OSError:
        raise _none(state_dir) from None
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
            sock.settimeout(seconds)
            sock.connect(f"/proc/self/fd/{folder}/{NAME}")
            sock.sendall(json.dumps({"do": word} | more).encode() + b"\n")
            with sock.makefile("rb") as stream:
                line = stream.readline()
    except (PermissionError, ConnectionResetError, BrokenPipeError):
        # Reset, or a broken pipe: the connection was closed without a look at the question.
        raise _forbidden(state_dir) from None
    except TimeoutError:
        sentence = f"the gateway of the state directory {state_dir} does not answer within {seconds:g} s."
        raise Refused(Exit.UNAVAILABLE, sentence) from None
    except OSError:
        raise _none(state_dir) from None
    finally:
        os.close(folder)
    if not line:
        raise _forbidden(state_dir)
    answer: dict[str, Any] = json.loads(line)
    return answer


def _none(state_dir: Path) -> Refused:
    none = f"no gateway runs with the state directory {state_dir}."
    return Refused(Exit.UNAVAILABLE, f"{none} Name another with --config FILE or --state-dir DIR.")


def _forbidden(state_dir: Path) -> Refused:
    sentence = f"the gateway of the state directory {state_dir} may not be asked. Run this as the gateway's user."
    return Refused(Exit.NO_PERMISSION, sentence)
