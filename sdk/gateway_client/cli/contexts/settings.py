"""Which gateway a command speaks to: flag before environment before context file, member by member. Where none of them
names a gateway, the `gateway dev` that runs here.

`address` and `public_base_url` belong together: a TCP address that was given by a flag does not get the URL that the
context has for another one. A key never comes by flag or environment, only the name of its file does; a file of
$CREDENTIALS_DIRECTORY is used where none was named.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from gateway_client.cli.contexts.contexts import MEMBERS, Contexts, GatewayContext, contexts_file, load
from gateway_client.cli.contexts.running_dev import SOURCE, running_dev
from gateway_client.cli.display.safe import safe
from gateway_client.cli.exits import Failure, ScriptExit, usage
from gateway_client.wire.address import Address

CREDENTIALS = {"operator_key_file": "operator.key", "private_key_file": "operator.pem"}
"""Names below $CREDENTIALS_DIRECTORY."""
FIRST = "gateway dev starts one here; for another, gatectl context set NAME --address URL"


@dataclass(frozen=True, slots=True)
class Layer:
    """The settings from one source."""

    source: str
    context: GatewayContext


class CliSettings:
    """Read when first asked for, so that commands which need no gateway need no context."""

    def __init__(self, flags: Mapping[str, str], environ: Mapping[str, str]) -> None:
        """`flags`: members of a context, and `context`, as they were given."""
        self._flags = flags
        self._environ = environ
        self.file = contexts_file(environ)

    @cached_property
    def contexts(self) -> Contexts:
        """The context file. Raises Failure."""
        return load(self.file)

    @property
    def name(self) -> str | None:
        """The name of the context in use."""
        given = self._flags.get("context") or self._environ.get("GATECTL_CONTEXT")
        return given or self.contexts.current

    @cached_property
    def layers(self) -> tuple[Layer, ...]:
        """Sources, the strongest first."""
        flags = GatewayContext(**{one: value for one, value in self._flags.items() if one in MEMBERS})
        variables = GatewayContext(**{one: self._environ.get(f"GATECTL_{one.upper()}") or None for one in MEMBERS})
        named = GatewayContext() if self.name is None else self._from_file(self.contexts.named(self.name))
        given = [Layer("flag", flags), Layer("environment", variables), Layer(f"context {self.name}", named)]
        is_named = any(layer.context.address or layer.context.agent_address for layer in given)
        dev = None if self.name is not None or is_named else running_dev(self._environ)
        if dev is not None:
            given.append(Layer(SOURCE, dev))
        return (*given, Layer("$CREDENTIALS_DIRECTORY", self._credentials()))

    def sourced(self, member: str) -> tuple[str, str] | None:
        """Value and source of one member."""
        for layer in self.layers:
            value: str | None = getattr(layer.context, member)
            if value is not None:
                return value, layer.source
        return None

    def value(self, member: str) -> str | None:
        """One member; None when no layer has it."""
        pair = self.sourced(member)
        return None if pair is None else pair[0]

    @property
    def is_running_dev(self) -> bool:
        """No gateway is named, and one of `gateway dev` runs here."""
        return any(layer.source == SOURCE for layer in self.layers)

    def address(self, member: str = "address") -> Address:
        """The gateway's address, with the URL that belongs to it. Raises Failure no_address."""
        pair = self.sourced(member)
        if member == "agent_address" and (pair is None or self._is_overruled(pair[1])):
            pair = self.sourced("address")
        if pair is None:
            raise Failure(ScriptExit.USAGE, "no_address", "no gateway is named", FIRST)
        text, source = pair
        try:
            return Address.parse(text, self._base_for(text, source))
        except ValueError as error:
            mend = "--public-base-url, or public_base_url of the context" if "public_base_url" in str(error) else FIRST
            raise usage(f"the address of the {safe(source)} can't be used: {error}", mend) from None

    def key_file(self, member: str) -> Path:
        """A key's file. Raises Failure no_credential."""
        value = self.value(member)
        if value is None:
            option = f"--{member.replace('_', '-')}"
            raise Failure(ScriptExit.DENIED, "no_credential", f"no {member} is named", f"{option}, or {FIRST}")
        return self._expanded(value)

    def _is_overruled(self, source: str) -> bool:
        """True when `--address` was given above the layer that names the agents' address."""
        order = [layer.source for layer in self.layers]
        given = self.sourced("address")
        return given is not None and order.index(given[1]) < order.index(source)

    def _base_for(self, text: str, source: str) -> str | None:
        pair = self.sourced("public_base_url")
        if pair is None:
            return None
        order = [layer.source for layer in self.layers]
        is_weaker = order.index(pair[1]) > order.index(source)
        return None if is_weaker and not text.startswith("unix:") else pair[0]

    def _from_file(self, context: GatewayContext) -> GatewayContext:
        """With relative paths made those beside the context file."""
        members = {one: getattr(context, one) for one in MEMBERS}
        for member, value in members.items():
            if member.endswith("_file") and value is not None and not value.startswith(("~", "/", "$")):
                members[member] = str(self.file.parent / value)
        return GatewayContext(**members)

    def _expanded(self, value: str) -> Path:
        prefix = "$CREDENTIALS_DIRECTORY/"
        if value.startswith(prefix):
            folder = self._environ.get("CREDENTIALS_DIRECTORY")
            if not folder:
                raise Failure(ScriptExit.DENIED, "no_credential", "CREDENTIALS_DIRECTORY is not set", "LoadCredential=")
            return Path(folder) / value.removeprefix(prefix)
        return Path(value).expanduser()

    def _credentials(self) -> GatewayContext:
        folder = self._environ.get("CREDENTIALS_DIRECTORY")
        if not folder:
            return GatewayContext()
        files = {member: Path(folder) / name for member, name in CREDENTIALS.items()}
        return GatewayContext(**{member: str(file) for member, file in files.items() if os.path.lexists(file)})
