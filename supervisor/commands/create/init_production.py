"""Files of `gateway init --production`: a folder with all that `gateway run` needs, and a list of next steps.

Guarantees that no file is overwritten, that `gateway check` accepts the result as it is, and that the configuration,
written last, exists only if every file that it names does. Two secrets are for the operator to take away: an API key,
shown once, and a private key file.
"""

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import msgspec

from ipc.process.exits import Exit
from supervisor.commands.create.provision import make_credentials
from supervisor.dev.private_files import keep_private, write_private
from supervisor.refusal import Refused
from supervisor.settings.kind import PathContext, Wrong
from supervisor.settings.sections.addresses import base_url

CONFIGURATION = "gateway.toml"
CONTRIB = Path(__file__).resolve().parents[3] / "contrib"
"""In a checkout and in an installation alike, `contrib` lies beside this package."""
FIRST_ACTION = "text_digest.yaml"
"""Computes only: an action that can do no harm."""
QUOTAS = {"max_calls_per_hour": 3600, "max_sessions": 32}
"""For each principal: one call a second, and leases for as many processes as an agent is likely to have."""

_CONFIGURATION = """\
# A gateway for production: docs/configuration.md has every setting, `gateway check --config FILE` says what is wrong.
# Paths without a leading / are taken from the folder of this file.
state_dir = {state_dir}
# Agents make their proofs for this URL, whatever the Host header says: change it to the URL that they use.
public_base_url = {public_base_url}
listen_uds_path = {client_socket}
listen_admin_uds_path = {admin_socket}
manifests_dir = "actions"
policy_dir = "policy"

lease_signing_key_path = "keys/lease.pem"
grant_signing_key_path = "keys/grant.pem"
receipt_signing_key_path = "keys/receipt.pem"
receipt_keys_jwks_path = "receipt-keys.jwks.json"

[secrets]
file = "secrets.json"

# Who may connect as an agent: the user id of its process, and who that is. Without an entry no agent gets a lease.
# [identity.peercred.principals.1004]
# principal = "billing-agent"
# scopes = ["tools:call"]
# owner = "team-billing"

# Prometheus reads metrics here without a credential. Only this host reaches the address (docs/metrics.md).
# [metrics]
# listen = "127.0.0.1:9464"

[[operators]]
name = {operator}
api_key_sha256 = "{digest}"
dpop_jkt = "{jkt}"
"""

_NEXT = """\
{folder}/gateway.toml is written, with keys, operator and policy; `gateway check` accepts it. Next:

1. Move {folder}/operator.pem, the key of the operator {operator} for proofs, to that operator's own machine, and hand
   this API key over. It is kept nowhere and not shown again:

   {api_key}

2. Say who your agents are: [identity.peercred.principals.<uid>] in {folder}/gateway.toml.
3. Say what they may call: "acl" in {folder}/policy/data.json (docs/policy.md). One action is there to try, text_digest;
   others go into {folder}/actions (docs/manifests.md). "limits" beside it is what each principal may use: 3600 calls an
   hour and 32 leases at once (docs/configuration.md, "Quotas").
4. gateway check --config {quoted}
5. gateway run --config {quoted}, or with systemd: contrib/systemd/install.sh (docs/operations.md).
"""


class ProductionFolder(msgspec.Struct, frozen=True):
    """Where it all goes."""

    folder: Path
    state_dir: Path
    run_dir: Path
    public_base_url: str


def found(place: ProductionFolder, operator: str, make_keys: Callable[[Path], str]) -> str:
    """Write everything; return what to tell. Raises Refused."""
    try:
        url = base_url(place.public_base_url, PathContext(Path.cwd(), {}))
    except Wrong as wrong:
        raise Refused(Exit.USAGE, f"--public-base-url {wrong.what}. {wrong.mend}") from None
    folder = place.folder.absolute()
    file = folder / CONFIGURATION
    if file.exists():
        raise Refused(Exit.CONFIG, f"{file} is there already; nothing was changed. Move it away, or name another DIR.")
    made = make_credentials(folder, operator, make_keys)
    try:
        _copy(CONTRIB / "policy", folder / "policy", ("*.rego",))
        keep_private(folder / "policy" / "data.json", _data)
        _copy(CONTRIB / "examples" / "actions", folder / "actions", (FIRST_ACTION,))
        keep_private(folder / "secrets.json", lambda: "{}\n")
        write_private(
            file,
            _CONFIGURATION.format(
                state_dir=_quoted(place.state_dir.absolute()), public_base_url=_quoted(url),
                client_socket=_quoted(place.run_dir.absolute() / "gate.sock"),
                admin_socket=_quoted(place.run_dir.absolute() / "gate-admin.sock"),
                operator=_quoted(operator), digest=made.digest, jkt=made.jkt,
            ),
        )  # fmt: skip
    except OSError as error:
        raise Refused(Exit.NO_PERMISSION, f"{error.filename or folder} can't be written: {error.strerror}.") from None
    return _NEXT.format(folder=folder, operator=operator, api_key=made.api_key, quoted=shlex.quote(str(file)))


def _copy(source: Path, folder: Path, patterns: tuple[str, ...]) -> None:
    folder.mkdir(mode=0o700, exist_ok=True)
    for pattern in patterns:
        for file in sorted(source.glob(pattern)):
            keep_private(folder / file.name, file.read_text)


def _data() -> str:
    """The default policy's data, with quotas."""
    data = json.loads((CONTRIB / "policy" / "data.json").read_text())
    return json.dumps(data | {"limits": {"default": QUOTAS}}, indent=2) + "\n"


def _quoted(text: object) -> str:
    """A basic string of TOML: as JSON has it, but without pairs of surrogates."""
    return json.dumps(str(text), ensure_ascii=False)
