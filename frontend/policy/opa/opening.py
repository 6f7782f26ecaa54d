"""Makes the engine of a front out of settings, and tries whether its OPA answers.

Imported only where an OPA decides, for what HTTP would cost every other start.
"""

from collections.abc import Callable
from pathlib import Path

import trio

from frontend.deadlines import QUESTION_SECONDS, FileDeadlines, PolicyDeadlines
from frontend.policy.opa import wire
from frontend.policy.opa.engine import OpaPolicy
from frontend.policy.opa.lines import OpaConnections, OpaUnreached
from frontend.policy.opa.pushing import Pushed
from ipc.settings import Settings


def open_opa(
    settings: Settings, is_current: Callable[[str], bool], note_remembered: Callable[[], None],
    deadlines: PolicyDeadlines, files: FileDeadlines, *, is_successor: bool = False,
) -> OpaPolicy:  # fmt: skip
    """The engine over `settings.opa_url`; see OpaPolicy and Pushed. Raises KeyFileError for a bad token."""
    remembers = settings.opa_memo == "revision"
    lines = open_lines(settings)
    pushed = Pushed(lines, Path(settings.fronts_folder), is_current, files, reads_revision=remembers)
    return OpaPolicy(lines, pushed, note_remembered, deadlines, remembers=remembers, is_successor=is_successor)


async def opa_problem(settings: Settings, seconds: float = QUESTION_SECONDS) -> str | None:
    """Why the OPA of these settings can't be asked now, in a sentence; None where it answers. Raises KeyFileError."""
    lines = open_lines(settings)
    try:
        with trio.fail_after(seconds):
            wire.found_in(await lines.ask("GET", f"{wire.DATA}/{wire.MARK}"))
    except trio.TooSlowError:
        return f"OPA did not answer within {seconds:g} s"
    except (OpaUnreached, wire.NotUnderstood) as error:
        return str(error)
    finally:
        with trio.CancelScope(shield=True, deadline=trio.current_time() + seconds):
            await lines.close()
    return None


def open_lines(settings: Settings) -> OpaConnections:
    """Connections to `settings.opa_url`, none of them open yet. Raises KeyFileError for a token that can't be used."""
    token = None if settings.opa_token_file is None else Path(settings.opa_token_file)
    return OpaConnections(settings.opa_url or "", token)
