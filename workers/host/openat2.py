"""openat2(2): opening a path so that the kernel refuses to leave a folder or to follow any link.

The kernel resolves and checks in one step, so there is no moment between check and use. Rejected: walking the path
segment by segment in user space, which a rename in between defeats. Linux 5.6 or later; older kernels fail closed.
"""

import ctypes
import os

_SYS_OPENAT2 = 437
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_NO_SYMLINKS = 0x04
_RESOLVE_BENEATH = 0x08
_RESOLVE = _RESOLVE_BENEATH | _RESOLVE_NO_MAGICLINKS | _RESOLVE_NO_SYMLINKS

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def open_beneath(folder: int, path: str, flags: int, mode: int = 0) -> int:
    """A close-on-exec descriptor for `path` below the open folder `folder`.

    Raises OSError: EXDEV for a path that leaves the folder, ELOOP for any symbolic link on the way, or what open(2)
    would say. EAGAIN (a rename raced) is tried again a few times.
    """
    how = _OpenHow(flags | os.O_CLOEXEC, mode, _RESOLVE)
    name = os.fsencode(path)
    number = 0
    for _ in range(8):
        descriptor = _libc.syscall(
            ctypes.c_long(_SYS_OPENAT2), ctypes.c_int(folder), ctypes.c_char_p(name), ctypes.byref(how),
            ctypes.c_size_t(ctypes.sizeof(how)),
        )  # fmt: skip
        if descriptor >= 0:
            return int(descriptor)
        number = ctypes.get_errno()
        if number not in (11, 4):  # EAGAIN, EINTR
            break
    raise OSError(number, os.strerror(number))
