"""The policy of a dev gateway: a copy of the example in the state directory, where grants persist.

Guarantees that a file that is there is never written over: data.json holds what operators granted, rules may be under
work. Rules that differ from those that came with this version are named in the log, with the mend.
"""

from pathlib import Path

import msgspec

from ipc.process.exits import Exit
from ipc.settings import Settings
from supervisor.dev.private_files import keep_private
from supervisor.logs import log
from supervisor.refusal import Refused

FOLDER = "policy"


def own_policy(shipped: Path, state_dir: Path) -> Path:
    """The policy folder of this gateway, with every file of `shipped` in it. Raises Refused."""
    folder = state_dir / FOLDER
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        for source in sorted((*shipped.glob("*.rego"), *shipped.glob("*.json"))):
            own = folder / source.name
            is_as_shipped = keep_private(own, source.read_text) == source.read_text()
            if own.suffix == ".rego" and not is_as_shipped:
                mend = "remove the file to get those that came with this version"
                log.info("the policy folder has other rules than this version's", file=str(own), mend=mend)
    except OSError as error:
        raise Refused(Exit.NO_PERMISSION, f"policy folder {folder} can't be made or read: {error.strerror}.") from None
    return folder


def with_own_policy(settings: Settings) -> Settings:
    """The same, with the policy in its state directory: once started, a dev gateway that was not told of one has it."""
    own = Path(settings.state_dir) / FOLDER
    return msgspec.structs.replace(settings, policy_dir=str(own)) if own.is_dir() else settings
