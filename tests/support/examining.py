"""A policy examiner for tests, started as the supervisor starts it."""

import os
import socket
import subprocess
import sys

from frontend.policy.tools.examiner import ExaminerClient
from tests.support.policy import REPOSITORY, end


class RunningExaminer:
    """A real examiner process and the front's end of its channel."""

    def __init__(self) -> None:
        self.sock, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                [
                    sys.executable, "-m", "workers.examiner",
                    "--channel-fd", str(theirs.fileno()), "--parent", str(os.getpid()),
                ],
                cwd=REPOSITORY,
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
            )  # fmt: skip
        self.examiner = ExaminerClient(self.sock)

    def close(self) -> None:
        """Close the channel and end the process."""
        self.sock.close()
        end(self.process)
