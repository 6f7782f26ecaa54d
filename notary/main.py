"""The notary process: `python -m notary.main --control-fd N --parent PID`, started by the supervisor.

Opens database and keys, says so, and serves (notary/service.py). Ends with an exit code of ipc/process/exits.py;
SIGTERM and SIGINT are the supervisor's business and ignored here.
"""

import socket

from ipc.channel.blocking import BlockingChannel, ChannelClosed
from ipc.channel.framing import FrameError
from ipc.channel.protocol_states import ProtocolError
from ipc.limits import MAX_CONTROL_FRAME
from ipc.messages.notarising import NotaryReady, StartNotary, SupervisorToNotary
from ipc.process.child import become_child
from ipc.process.exits import Exit
from ipc.process.journald import own_journal
from ipc.process.logs import LogWriter, log, write_lines
from ipc.process.private_files import PrivateFileError
from ipc.process.process_speed import leave, release_collector
from ipc.process.stderr import is_read_by_person
from ipc.protocols.notary import SUPERVISOR_TO_NOTARY


def main() -> None:
    """Entry point."""
    control = become_child("notary.main", "notary")
    write_lines(LogWriter(lambda: {"process": "notary"}, human=is_read_by_person(), journal=own_journal()))
    leave(run(control))


def run(sock: socket.socket) -> Exit:
    """Serve the supervisor at the other end; return why it ended."""
    # Only now: what a notary is made of takes a while, and must not outlive its parent meanwhile.
    from ipc.walls.confining import WallRefused, enter
    from notary.checkpoints import RolledBack
    from notary.database import DatabaseGone
    from notary.opening import open_state
    from notary.servers.table import look_up
    from notary.service import Control, Service
    from notary.store.contract import StoreGone
    from notary.walls import notary_walls

    control: Control = BlockingChannel(
        sock, SupervisorToNotary, table=SUPERVISOR_TO_NOTARY, cap_in=MAX_CONTROL_FRAME,
        cap_out=MAX_CONTROL_FRAME,
    )  # fmt: skip
    try:
        start = control.receive()
        assert isinstance(start, StartNotary), "the session table lets nothing else come first"
        places = look_up(start.settings)
        enter(notary_walls(start.settings), start.settings.walls)
        try:
            state, remembered = open_state(start.settings, places=places)
        except OSError as error:
            log.error("the notary can't start", cause=f"{error.filename}: cannot use it: {error.strerror}.")
            return Exit.NO_PERMISSION if isinstance(error, PermissionError) else Exit.UNAVAILABLE
        control.send(NotaryReady())
        release_collector()
        service = Service(state, control, remembered)
        code = service.run()
        service.close()
        state.database.close()
        return code
    except PrivateFileError as error:
        log.error("the notary can't start", cause=str(error))
        return error.exit_code
    except WallRefused as error:
        log.error("the operating system refused a wall", cause=str(error))
        return Exit.SANDBOX
    except RolledBack as error:
        log.error("the notary can't start: its ledger was put back, cut or rewritten", cause=str(error))
        return Exit.ROLLED_BACK
    except DatabaseGone as error:
        log.error("the notary can't start: its database is not available", cause=str(error))
        return Exit.UNAVAILABLE
    except StoreGone as error:
        log.error("the notary can't start: its store is not available", cause=str(error))
        return Exit.UNAVAILABLE
    except ValueError as error:
        log.error("the notary can't start", cause=str(error))
        return Exit.CONFIG
    except (FrameError, ProtocolError) as error:
        log.error("the supervisor broke the protocol", cause=str(error))
        return Exit.PROTOCOL
    except (ChannelClosed, OSError):
        return Exit.ORPHANED
    except Exception:
        log.exception("the notary ended by an error")
        return Exit.FAILED


if __name__ == "__main__":
    main()
