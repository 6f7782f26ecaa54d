"""Settings of `gateway dev`: a whole gateway from nothing but a state directory, for one person on one machine.

Defaults lie below file, environment and flags, so that a configuration file may override any of them.
`Settings.weakened` names each protection that this mode weakens, and so do the terminal and every audit event; this
mode never serves as production.
"""

import os
import pwd
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ipc.process.exits import Exit
from ipc.settings import OperatorSettings
from supervisor.dev.keys import OPERATOR
from supervisor.refusal import Refused
from supervisor.settings.checks.ceilings import ceiling_problems, ceilings_here
from supervisor.settings.checks.overlaps import overlap_problems
from supervisor.settings.config import Loaded, check, open_document
from supervisor.settings.document import RANK_FLAG

DEFAULT_LISTEN = "127.0.0.1:3000"
EXAMPLES = Path(__file__).resolve().parents[2] / "contrib" / "examples"
"""In a checkout and in an installation alike, `contrib` lies beside this package."""

LABEL = "default of gateway dev"
"""Named as the origin of settings that are defaults of dev mode."""
_PLACEHOLDER = "http://localhost"


class DevOptions(msgspec.Struct, frozen=True):
    """The command line of `gateway dev`; None where nothing was given."""

    listen: str | None = None
    state_dir: Path | None = None
    config: Path | None = None
    ready_file: Path | None = None
    has_upstream: bool = True
    """Serve upstream.gateway.test, unless the configuration sends that name elsewhere."""
    has_envelope: bool = False
    """Send the list of actions as an object: `compat.actions_envelope`."""
    has_console: bool = False
    """Serve the operators' page beside the gateway."""


def default_state_dir(environ: Mapping[str, str]) -> Path:
    """`$XDG_STATE_HOME/gateway-dev`, or `~/.local/state/gateway-dev`. Raises Refused without a home folder."""
    base = environ.get("XDG_STATE_HOME", "")
    if base.startswith("/"):
        return Path(base) / "gateway-dev"
    home = environ.get("HOME", "")
    if not home:
        try:
            home = pwd.getpwuid(os.geteuid()).pw_dir
        except KeyError:
            sentence = f"user id {os.geteuid()} has no home folder. Name a folder: --state-dir DIR."
            raise Refused(Exit.NO_PERMISSION, sentence) from None
    return Path(home) / ".local" / "state" / "gateway-dev"


def is_default_state_dir(folder: Path, environ: Mapping[str, str]) -> bool:
    """Whether commands without --state-dir mean this one."""
    try:
        return folder == default_state_dir(environ)
    except Refused:
        return False


def load_dev(options: DevOptions, environ: Mapping[str, str]) -> Loaded:
    """Settings of a dev gateway. `public_base_url` is not final before the port is known: see prepare_dev."""
    document, context, problems = open_document(options.config, environ)
    if options.listen is not None:
        document.override(("listen_http_addr",), options.listen, "--listen", RANK_FLAG)
    if options.state_dir is not None:
        document.override(("state_dir",), str(Path.cwd() / options.state_dir), "--state-dir", RANK_FLAG)
    if options.has_envelope:
        document.override(("compat", "actions_envelope"), True, "--compat-envelope", RANK_FLAG)
    if options.state_dir is None:
        document.default(("state_dir",), str(default_state_dir(environ)), LABEL)
    for path, value in (
        (("listen_http_addr",), DEFAULT_LISTEN),
        (("unsafe_expose_http",), True),
        (("public_base_url",), _PLACEHOLDER),
        (("manifests_dir",), str(EXAMPLES / "actions")),
        (("policy_dir",), str(EXAMPLES / "policy")),
        (("identity", "provider"), "none"),
    ):
        document.default(path, value, LABEL)
    loaded = check(document, context, problems, (OperatorSettings(OPERATOR),))
    refused = [*overlap_problems(loaded), *ceiling_problems(loaded, ceilings_here())]
    if loaded.settings is None:
        return replace(loaded, problems=(*loaded.problems, *refused))
    if not loaded.settings.unsafe_expose_http:
        text = "unsafe_expose_http = false: gateway dev always listens on TCP. Remove it."
        refused.append(document.problem(("unsafe_expose_http",), text))
    if any(one.name == OPERATOR for one in loaded.settings.operators):
        text = f'operators: the name "{OPERATOR}" is that of the operator that gateway dev makes. Choose another.'
        refused.append(document.problem(("operators",), text))
    if refused:
        return Loaded(document, tuple(refused), None)
    return Loaded(document, (), msgspec.structs.replace(loaded.settings, dev_mode=True))
