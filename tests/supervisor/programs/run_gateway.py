"""Runs the real supervisor over the fake programs: settings as JSON on the command line, `ready` on standard output.

With `real` behind them template and policy are the real ones."""

import os
import sys
from contextlib import ExitStack
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ipc.settings import Settings
from supervisor.launch import PreparedGateway, launch, prepare_run
from supervisor.logs import configure_logs
from supervisor.programs import Programs
from supervisor.refusal import Refused
from supervisor.settings.config import Loaded
from supervisor.settings.document import Document

FAKES = Programs(
    front=("tests.supervisor.programs.fake_front",),
    notary=("tests.supervisor.programs.fake_notary",),
    policy=("tests.supervisor.programs.fake_policy",),
    spare_policy=(),
    spares_after_seconds=0.0,
    front_silent_seconds=float("inf"),  # a fake front says how it is when a test asks it to
    template=("tests.supervisor.programs.fake_template",),
)


def reread(settings: Settings) -> Loaded:
    """The settings in `settings.json` of the state directory if a test has written one, else the same settings
    again."""
    file = Path(settings.state_dir) / "settings.json"
    latest = msgspec.json.decode(file.read_bytes(), type=Settings) if file.exists() else settings
    return Loaded(Document(), (), latest)


def main() -> int:
    settings = msgspec.json.decode(sys.argv[1], type=Settings)
    programs = (
        replace(FAKES, policy=Programs().policy, template=Programs().template) if sys.argv[2:] == ["real"] else FAKES
    )
    programs = replace(programs, installed=Path(settings.state_dir) / "installed")
    configure_logs()

    def prepare(cleanup: ExitStack) -> PreparedGateway:
        prepared = prepare_run(settings, lambda: reread(settings))(cleanup)
        return replace(prepared, announce=lambda: print("ready", flush=True))

    try:
        return launch(prepare, os.environ, programs)
    except Refused as refused:
        print(refused.sentence, file=sys.stderr)
        return refused.code


sys.exit(main())
