"""The manifest of one action: the content of its file, once every rule about it holds.

Owns the structs and their defaults. A Manifest exists only when its file has no problem (frontend/manifests/reading.py
makes them). The template process finds what a provider module really imports.
"""

from typing import Any

import msgspec

from frontend.manifests.imported import ImportedOperation
from frontend.manifests.mcp import McpTool
from ipc.effects import profile_of
from ipc.evidence.kept_values import KeptRules
from ipc.limits import MAX_SHARED_MEMORY_MB
from ipc.plan import MAX_FILES, MAX_TOTAL_BYTES, CallLimits, ResponseRules, SecretUse

FILES = "files"
"""First segment of every `fs.root`: it stands for the folder that `files_dir` names. SECURITY: keys and compiled
modules lie in the state directory; no action's files lie beside them."""


BUILT_IN = "builtin:"
"""First letters of `provider_module_digest` where the module is one of the gateway's own."""
ISOLATIONS = ("shared", "pooled", "process")


class Io(msgspec.Struct, frozen=True):
    """Section `io`: shapes and sizes of what goes in and comes out. Schemas are JSON Schema 2020-12."""

    request_schema: dict[str, Any] | None = None
    response_schema: dict[str, Any] | None = None
    max_request_bytes: int = 65_536
    max_response_bytes: int = 1_048_576


class EgressRules(msgspec.Struct, frozen=True):
    """Section `egress`: where the http host call may go."""

    profile: str = "none"
    allowed_domains: tuple[str, ...] = ()
    allowed_methods: tuple[str, ...] = ()


class RequestTemplate(msgspec.Struct, frozen=True):
    """Section `template`: the one HTTP request that this action sends, with at most one of the bodies."""

    method: str
    url_template: str
    headers: tuple[tuple[str, str], ...] = ()
    body_template: Any = None
    body_form: dict[str, Any] | None = None
    body_text: str | None = None


class Files(msgspec.Struct, frozen=True):
    """Section `fs`: what the fs host call may do below `root`."""

    root: str = FILES
    operation: str = ""
    """The operation that this action performs: what policy and people see."""
    path_pointer: str = "/path"
    """Where in the request the path stands, as a JSON pointer."""
    allowed_operations: tuple[str, ...] = ()
    allowed_paths: tuple[str, ...] = ()
    denied_paths: tuple[str, ...] = ()
    max_file_bytes: int = 1_048_576
    max_total_bytes: int = MAX_TOTAL_BYTES
    max_files: int = MAX_FILES

    def root_in(self, files_folder: str) -> str:
        """Where the root lies, when Settings.files_folder is this."""
        return files_folder + self.root.removeprefix(FILES)


class Manifest(msgspec.Struct, frozen=True):
    """One action as its file describes it. `file` and `module_line` are for problems that are found later."""

    action_id: str
    version: str
    description: str
    tags: tuple[str, ...]
    provider_module_digest: str
    """`sha256:<hex>` or `builtin:NAME`."""
    required_imports: tuple[str, ...]
    required_scopes: tuple[str, ...]
    risk_level: str
    declared_side_effects: tuple[str, ...]
    limits: CallLimits
    io: Io
    egress: EgressRules
    secrets: tuple[SecretUse, ...]
    verifier_kind: str
    verification_config: dict[str, Any]
    template: RequestTemplate | None
    response: ResponseRules | None
    """Section `response`; None: the result is as the provider makes it."""
    idempotency_header: str | None
    """Field `idempotency.header`: the header that has the id of the call's intent."""
    keep_output: bool
    """Field `idempotency.keep_output`: outputs are kept for calls that are made again under their key."""
    files: Files | None
    isolation: str
    """One of ISOLATIONS. SECURITY: only built-in modules are shared; they keep nothing from one call to the next."""
    expose_provider_error: bool
    """Whether a caller gets the provider's message about its failure."""
    preview: bool
    """Whether agents may ask for previews of their calls."""
    imported: ImportedOperation | None
    file: str
    module_line: int
    file_digest: str = ""
    """`sha256:<hex>` of the file's bytes; evidence tells by it which manifest was in force."""
    mcp: McpTool | None = None
    kept: KeptRules | None = None
    """Sections `evidence` and `summary`; None: evidence keeps no value of a request."""
    policy_input: tuple[str, ...] = ()
    """JSON pointers to the values of a request that policy may decide by."""

    @property
    def profile(self) -> str:
        """The worker profile that the imports select: fs, http or compute."""
        return profile_of(self.required_imports)

    @property
    def may_share(self) -> bool:
        """True if calls of this action may run beside each other in one worker."""
        is_built_in = self.provider_module_digest.startswith(BUILT_IN)
        return is_built_in and self.profile == "http" and self.limits.memory_mb <= MAX_SHARED_MEMORY_MB
