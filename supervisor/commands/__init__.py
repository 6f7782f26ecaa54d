"""The commands of `gateway`: one file a group, each with `add(commands)`, which puts its parsers beside the others.

A command is a function of its options that returns an exit code of `ipc.process.exits`; it may raise Refused, which the
console script prints as one sentence. `options.programs` are the children to start. The event loop is imported only
where a gateway is about to run: other commands, and refusals, do without.
"""

import argparse
from typing import TypeAlias

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
"""The type that `ArgumentParser.add_subparsers` returns: a group adds its parsers to it."""
