"""Starts one of our programs: `python -I launch.py MODULE ARGUMENTS…`; and the console script `gateway`.

Owns where our modules are found: in the folder of this file, before everything else. That folder is the checkout, or
`action_gateway/` among the installed packages: nothing else knows the difference.

SECURITY: an isolated interpreter (-I) sees no PYTHON* variable, no current directory and no folder of a script. This
file adds the one folder that it was installed with; and, where `site` did not run (-S), the folders of
libraries that `-X libraries=FOLDER:…` names.
"""

import os
import runpy
import signal
import sys
import traceback
import types

HERE = os.path.dirname(os.path.abspath(__file__))


def main() -> int:
    """The console script: run the command line, return its exit code."""
    undo_launcher()
    sys.path.insert(0, HERE)
    try:
        from supervisor.cli import main as command_line
    except KeyboardInterrupt:
        return 137  # as supervisor/cli.py has it
    return command_line()


def undo_launcher() -> None:
    """Begin as a program that a shell starts, whatever was inherited: signals are not blocked, the kernel reports
    children that end, and 0 to 2 are open, so that no socket of the gateway takes such a number.

    SIGHUP and SIGINT stay ignored where they are (nohup, a background job): a gateway that serves receives both anyway.
    """
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if signal.getsignal(signal.SIGTERM) == signal.SIG_IGN:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest number that is free: this one
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))


def library_that_failed(error: Exception) -> str | None:
    """The third-party library that could not be imported; None for any other error."""
    if isinstance(error, ImportError) and error.name:
        library = error.name.partition(".")[0]
        return None if _is_ours(library) else library
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    ours = max(place for place, frame in enumerate(frames) if _is_ours(_package(frame)))
    # The body of a module, right below our own code, means an import.
    is_import = len(frames) > ours + 1 and frames[ours + 1].f_code.co_name == "<module>"
    return _package(frames[ours + 1]) if is_import else None


def _package(frame: types.FrameType) -> str:
    return str(frame.f_globals.get("__name__")).partition(".")[0]


def _is_ours(name: str) -> bool:
    return name == "__main__" or os.path.exists(os.path.join(HERE, name)) or os.path.exists(f"{HERE}/{name}.py")


def run(program: str) -> None:
    """Become this program. A library that can't be loaded is one sentence and an exit code, not a trace."""
    try:
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    except Exception as error:
        library = library_that_failed(error)
        if library is None:
            raise
        from ipc.process.exits import Exit
        from ipc.process.logs import log

        log.error(
            f"{program} can't start: the library {library} can't be loaded. Install the gateway's requirements again, "
            "for this machine and this Python",
            cause=str(error),
        )
        sys.exit(Exit.UNAVAILABLE)


if __name__ == "__main__":
    sys.path[:] = [HERE, *sys.path, *filter(None, str(sys._xoptions.get("libraries", "")).split(os.pathsep))]
    del sys.argv[0]
    run(sys.argv[0])
