"""The template of the product whose workers try to escape: `python -m tests.support.escape_template`.

All that happens before a worker's first call is the product's: fork, descriptors, walls, channels. Only its Runner is
exchanged: a plan whose input names a step (tests/support/escape_table.py) or a lie (tests/support/escape_frames.py)
is answered with its result.
"""

import ctypes
import errno
import json
import mmap
import sys
from collections.abc import Mapping
from typing import Any

from ipc.messages.attesting import Permit
from ipc.messages.calling import Call, Result, Verification
from tests.support.escape_frames import LIES
from tests.support.escape_steps import IS_X86
from tests.support.escape_table import STEPS
from workers import template, worker
from workers.host.http import Renew, no_other
from workers.runtime.call import Runner

_CODE = b"\xb8\x14\x00\x00\x00\xcd\x80\xc3"  # mov eax, 20 (getpid of 32 bits); int 0x80; ret
_PAGE = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=7)


def int80() -> Any:
    """Code for a 32-bit system call, made while that is possible."""
    _PAGE.write(_CODE)
    return ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(_PAGE)))


class EscapingRunner(Runner):
    """Runs the steps that plans name, and everything else as the product does."""

    def run(self, call: Call, word: Permit, secrets: Mapping[str, str], renew: Renew = no_other) -> Result:
        """Try a step."""
        request = json.loads(call.plan.provider_input)
        if "step" not in request:
            return super().run(call, word, secrets, renew)
        facts = request["facts"] | {"int80": INT_80, "call_id": call.call_id}
        try:
            got = {"got": (STEPS | LIES)[request["step"]](facts)}
        except OSError as error:
            got = {"refused": errno.errorcode.get(error.errno or 0, str(error))}
        return Result(
            call_id=call.call_id, outcome="success", output=json.dumps(got), failure=None,
            verification=Verification("skipped"), observations=(), fuel_consumed=0, duration_us=0, io_calls=0,
        )  # fmt: skip


INT_80 = int80() if IS_X86 else None

if __name__ == "__main__":
    setattr(worker, "Runner", EscapingRunner)  # noqa: B010
    sys.exit(template.main(sys.argv[1:]))
