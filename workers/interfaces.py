"""The names and types of the provider interface, as `wit/provider.wit` has them.

One table, so that what a manifest lists, what a component imports and what the linker defines are the same words. A
component that imports or exports one of these names with another type is refused before it is mapped.
"""

from ipc.effects import IMPORTS

PACKAGE = "gateway:provider"
VERSION = "1.0.0"
TYPES = f"{PACKAGE}/types@{VERSION}"
INTERFACES = {name: f"{PACKAGE}/{name}@{VERSION}" for name in IMPORTS}
"""Short name, as in a manifest's `required_imports` -> name in a component."""

ENTRY = "run"

_KIND = "enum{invalid-input, denied, not-found, conflict, too-large, timeout, unavailable, internal}"
_ERROR = f"record{{kind: {_KIND}, message: string, details: option<string>, retryable: bool}}"
_ENCODING = "enum{utf8, base64}"
_HEADERS = "list<tuple<string, string>>"
_ENTRY_RECORD = "record{name: string, kind: enum{file, directory}, size: u64}"
_REQUEST = (
    f"record{{method: string, url: string, headers: {_HEADERS}, body: string, body-encoding: {_ENCODING}, "
    "timeout-ms: option<u32>}"
)
_RESPONSE = f"record{{status: u16, headers: {_HEADERS}, body: string, body-encoding: {_ENCODING}}}"

ENTRY_TYPE = f"func(input: string) -> result<string, {_ERROR}>"

FUNCTIONS: dict[str, dict[str, str]] = {
    "http": {"send": f"func(request: {_REQUEST}) -> result<{_RESPONSE}, {_ERROR}>"},
    "fs": {
        "read": f"func(path: string, encoding: {_ENCODING}) -> result<string, {_ERROR}>",
        "write": f"func(path: string, data: string, encoding: {_ENCODING}) -> result<u64, {_ERROR}>",
        "append": f"func(path: string, data: string, encoding: {_ENCODING}) -> result<u64, {_ERROR}>",
        "list": f"func(path: string) -> result<list<{_ENTRY_RECORD}>, {_ERROR}>",
        "stat": f"func(path: string) -> result<{_ENTRY_RECORD}, {_ERROR}>",
        "delete": f"func(path: string) -> result<_, {_ERROR}>",
    },
    "log": {"message": "func(level: enum{debug, info, warn, error}, text: string)"},
    "clock": {"now": "func() -> u64"},
}
"""Interface -> function -> type, in the notation of `contract.describe`."""
