"""The parts of a gateway's surroundings that a test can break: its clock, the flushes of its disk, the room on its
disk."""

import ctypes
import mmap
import os
import shutil
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from bench.slow_disk import built

HERE = Path(__file__).parent
DISK_BYTES = 192 << 20
_NEW_MOUNTS = 0x00020000


class Clock:
    """The wall clock of the gateway and its clients, in a file that every process of it maps."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "clock"
        self.path.write_bytes(bytes(8))
        with self.path.open("r+b") as file:
            self._shift = mmap.mmap(file.fileno(), 8)

    @property
    def shift(self) -> float:
        """Seconds ahead of the machine's clock."""
        return int.from_bytes(self._shift[:8], "little", signed=True) / 1e9

    def step(self, seconds: float) -> None:
        """Step all processes at once."""
        self._shift[:8] = round((self.shift + seconds) * 1e9).to_bytes(8, "little", signed=True)

    def now(self) -> float:
        """Unix seconds as the gateway sees them."""
        return time.time() + self.shift

    def close(self) -> None:
        """Unmap the file."""
        self._shift.close()


def libraries(folder: Path) -> str:
    """Both shims, as LD_PRELOAD wants them. Raises NoCompilerError, CalledProcessError."""
    slow = built(folder)
    clock = folder / "shifted_clock.so"
    compiler = shutil.which("cc")
    assert compiler is not None, "there is one, since the other shim was built"
    command = [compiler, "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o", str(clock)]
    subprocess.run([*command, str(HERE / "shifted_clock.c")], check=True)
    return f"{slow}:{clock}"


def own_mounts() -> bool:
    """Give this process, and all that it starts, mounts of its own, gone with them. False where that needs root."""
    if os.geteuid() != 0 or ctypes.CDLL(None, use_errno=True).unshare(_NEW_MOUNTS) != 0:
        return False
    return subprocess.run(["mount", "--make-rprivate", "/"], check=False, stderr=subprocess.DEVNULL).returncode == 0


class Disk:
    """A folder on a small disk of its own, which can be filled. `is_small` False: where that could not be made."""

    def __init__(self, folder: Path, *, is_small: bool) -> None:
        folder.mkdir(mode=0o700)
        self._folder = folder
        self._ballast = folder / "ballast"
        options = f"size={DISK_BYTES},mode=0700"
        command = ["mount", "-t", "tmpfs", "-o", options, "chaos", str(folder)]
        self.is_small = is_small and subprocess.run(command, check=False).returncode == 0

    def fill(self) -> None:
        """Leave no room."""
        with suppress(OSError), self._ballast.open("wb", buffering=0) as file:
            for size in (1 << 20, 1 << 12):
                with suppress(OSError):
                    while file.write(bytes(size)) == size:
                        pass

    def free(self) -> None:
        """Give the room back."""
        self._ballast.unlink(missing_ok=True)

    def close(self) -> None:
        """Unmount."""
        self.free()
        if self.is_small:
            subprocess.run(["umount", "-l", str(self._folder)], check=False)
