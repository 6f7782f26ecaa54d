"""The copier process: copies the ledger's write-ahead log into its file, so that no unit waits for that.

A fork of the notary, made before it opens a key. It reads nothing but the database, speaks to the notary alone, dies
with it, and may be killed at any moment: SQLite counts what was copied only once it is durable in the file.
"""

import os
import socket
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Final

from setproctitle import setproctitle

from ipc.process.exits import Exit
from ipc.process.logs import LogWriter, log, write_lines
from ipc.process.parent import die_with_parent, refuse_core_dumps
from ipc.process.process_speed import leave
from ipc.process.stderr import is_read_by_person
from ipc.walls.confining import WallRefused
from ipc.walls.given import Given
from notary.backends.sqlite import connect
from notary.copying import COPY, DONE, CopierProcess
from notary.walls import copier_walls, enter

NICE: Final = 10
"""Behind front and notary, ahead of workers."""
_FIRST_DESCRIPTOR, _LAST_DESCRIPTOR = 3, 2**31 - 1


def start_copier(file: Path, given: Given) -> CopierProcess | None:
    """Fork the copier of this database. None where the machine has no room for another process: a notary does without.

    The caller has one thread, holds no key, and has installed no filter of system calls yet.
    """
    parent = os.getpid()
    ours, theirs = socket.socketpair()
    with theirs:
        try:
            pid = os.fork()
        except OSError as error:
            ours.close()
            log.warning("the notary copies its write-ahead log itself until it is started again", cause=str(error))
            return None
        if pid == 0:
            leave(_run(theirs, file, given, parent))
    ours.setblocking(False)
    return CopierProcess(pid, ours)


def _run(sock: socket.socket, file: Path, given: Given, parent: int) -> int:
    try:
        die_with_parent(parent)
        refuse_core_dumps()
        os.closerange(_FIRST_DESCRIPTOR, sock.fileno())
        os.closerange(sock.fileno() + 1, _LAST_DESCRIPTOR)
        setproctitle("gateway: copier")
        os.nice(NICE)
        write_lines(LogWriter(lambda: {"process": "copier"}, human=is_read_by_person()))
        _serve(sock, file, given)
        return Exit.OK
    except (SystemExit, BrokenPipeError, ConnectionResetError):
        return Exit.ORPHANED
    except WallRefused as error:
        log.error("the operating system refused a wall", cause=str(error))
        return Exit.SANDBOX
    except Exception:
        log.exception("the copier ended by an error")
        return Exit.FAILED


def _serve(sock: socket.socket, file: Path, given: Given) -> None:
    """Copy each time that the notary asks, until it is gone. The first request says that the database exists."""
    connection: sqlite3.Connection | None = None
    is_confined = False
    while sock.recv(1) == COPY:
        if not is_confined:
            enter(copier_walls(file), given)
            is_confined = True
        try:
            connection = connection or connect(file, writes=True)
            copy(connection)
        except sqlite3.Error as error:
            log.warning("the write-ahead log could not be copied", cause=str(error))
            if connection is not None:
                with suppress(sqlite3.Error):
                    connection.close()
            connection = None
        sock.sendall(DONE)


def copy(connection: sqlite3.Connection) -> None:
    """Copy what is committed, as far as readers allow; then what was committed meanwhile, which is little."""
    for _ in range(2):
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
