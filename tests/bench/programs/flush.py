"""Flushes the file that it is given in three ways, and says how long that took, what was counted and how it failed."""

import ctypes
import json
import os
import sys
import time

file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.write(file, b"x")
started = time.monotonic()
os.fsync(file)
os.fdatasync(file)
ctypes.CDLL(None).sync_file_range(file, ctypes.c_longlong(0), ctypes.c_longlong(0), 7)
taken = time.monotonic() - started
failed = None
try:
    os.fsync(12345)
except OSError as error:
    failed = error.strerror
counted = ctypes.c_ulong.in_dll(ctypes.CDLL(None), "slow_disk_flushes").value
print(json.dumps({"taken": taken, "counted": counted, "failed": failed, "pid": os.getpid()}))
