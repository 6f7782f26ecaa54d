"""Runs the real supervisor over the fake programs: settings as JSON on the command line, `ready` on standard output.

With `real` behind them template and policy are the real ones."""

import os
import sys
from contextlib import ExitStack
from dataclasses import replace

import msgspec

from ipc.settings import Settings
from supervisor.launch import Prepared, launch, prepare_run
from supervisor.logs import configure_logs
from supervisor.programs import Programs
from supervisor.refusal import Refused

FAKES = Programs(
    front=("tests.supervisor.programs.fake_front",),
    notary=("tests.supervisor.programs.fake_notary",),
    policy=("tests.supervisor.programs.fake_policy",),
    template=("tests.supervisor.programs.fake_template",),
)


def main() -> int:
    settings = msgspec.json.decode(sys.argv[1], type=Settings)
    programs = (
        replace(FAKES, policy=Programs().policy, template=Programs().template) if sys.argv[2:] == ["real"] else FAKES
    )
    configure_logs()

    def prepare(cleanup: ExitStack) -> Prepared:
        return replace(prepare_run(settings)(cleanup), announce=lambda: print("ready", flush=True))

    try:
        return launch(prepare, os.environ, programs)
    except Refused as refused:
        print(refused.sentence, file=sys.stderr)
        return refused.code


sys.exit(main())
