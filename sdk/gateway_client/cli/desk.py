"""The context of every command: shared options, clients and output.

`--json`, `--context` and the like may stand before a command or behind it; what stands behind wins.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from gateway_client.agents import AgentClient
from gateway_client.calling.core import Limits
from gateway_client.cli.contexts.settings import CliSettings
from gateway_client.cli.display.output import Output, note
from gateway_client.cli.display.safe import safe
from gateway_client.cli.exits import Failure, ScriptExit, usage
from gateway_client.errors import GatewayError
from gateway_client.keys import KeyFileError, OperatorCredential, ProofKey
from gateway_client.operators import OperatorClient
from gateway_client.wire.address import Address

OPTIONS = (
    ("context", "NAME", "Use this context instead of the current one."),
    ("address", "URL", "unix:///PATH or http://HOST:PORT."),
    ("public-base-url", "URL", "What proofs are made for, when it is not the address."),
    ("operator-key-file", "FILE", "File with the operator's API key."),
    ("private-key-file", "FILE", "PEM file with the operator's P-256 key."),
)

COMPLETION_SECONDS = 2.0
"""The user has pressed a key and waits for what is offered: a gateway that takes longer offers nothing."""


class CliContext:
    """One run of gatectl."""

    def __init__(self, completion_seconds: float = COMPLETION_SECONDS) -> None:
        self.completion_seconds = completion_seconds
        self.flags: dict[str, str] = {}
        self.is_json = False

    @property
    def settings(self) -> CliSettings:
        """Flags, environment and context file as one."""
        return CliSettings(self.flags, os.environ)

    @property
    def out(self) -> Output:
        """Standard output."""
        return Output(self.is_json)

    @contextmanager
    def operator(self, **limits: Any) -> Iterator[OperatorClient]:
        """The operator's client. Raises Failure."""
        settings = self.settings
        address, credential = settings.address(), self.credential()
        with OperatorClient(address, credential, Limits(**limits)) as client:
            yield client

    def credential(self) -> OperatorCredential:
        """The operator's keys from their files. Raises Failure."""
        settings = self.settings
        files = [settings.key_file(member) for member in ("operator_key_file", "private_key_file")]
        try:
            return OperatorCredential.load(*files)
        except KeyFileError as error:
            raise Failure(ScriptExit.DENIED, "key_file", str(error)) from None

    @contextmanager
    def agent(self, **limits: Any) -> Iterator[AgentClient]:
        """The agent's client, with a key of its own unless the context names one. Raises Failure."""
        address, key = self.agent_parts()
        with AgentClient(address, key, limits=Limits(**limits)) as client:
            yield client

    def agent_parts(self) -> tuple[Address, ProofKey | None]:
        """Where agents call, and the key that the context names for them, if any. Raises Failure."""
        settings = self.settings
        key = None
        if settings.value("agent_key_file") is not None:
            try:
                key = ProofKey.load(settings.key_file("agent_key_file"))
            except KeyFileError as error:
                raise Failure(ScriptExit.DENIED, "key_file", str(error)) from None
        return settings.address("agent_address"), key

    @property
    def can_ask(self) -> bool:
        """There is a terminal to ask on, and an answer is not in the way of JSON."""
        return not self.is_json and sys.stdin.isatty() and sys.stderr.isatty()

    def change(self, operator: OperatorClient, question: str, is_agreed: bool) -> None:
        """On a terminal, say which gateway a change is for, and ask once unless that is a dev gateway: a script has
        decided already. Raises Failure not_confirmed."""
        if self.is_json or not sys.stderr.isatty():
            return
        is_asked = self.can_ask and not is_agreed and not _is_dev(operator)
        if is_asked:
            self.confirm(question, False)
        else:
            self._name_gateway()

    def _name_gateway(self) -> None:
        """On a terminal, name the gateway: a user of several may have another in mind."""
        if self.is_json or not sys.stderr.isatty():
            return
        note(f"gatectl: for {self.gateway_name()}")

    def gateway_name(self) -> str:
        """The gateway's address, and where that comes from. Raises Failure."""
        settings = self.settings
        pair = settings.sourced("address")
        source = "" if pair is None else f" ({safe(pair[1])})"
        return f"{safe(settings.address().text)}{source}"

    def confirm(self, question: str, is_agreed: bool) -> None:
        """Ask once on a terminal; without one only `--yes` is an answer. Raises Failure."""
        self._name_gateway()
        if is_agreed:
            return
        if not self.can_ask:
            raise usage("this needs a yes, and there is no terminal to ask on", "add --yes")
        if not click.confirm(question, default=False, err=True):
            raise Failure(ScriptExit.FAILED, "not_confirmed", "nothing was done")


def yes_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--yes` of a command that asks on a terminal."""
    text = "Do not ask, where this would: on a terminal, for a gateway that is not one of gateway dev."
    return click.option("--yes", "-y", is_flag=True, help=text)(function)


def _is_dev(operator: OperatorClient) -> bool:
    """True if the gateway says that it is in dev mode; without an answer it counts as production."""
    try:
        return "dev_mode" in operator.status().weakened
    except GatewayError:
        return False


def _keep(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    desk = context.ensure_object(CliContext)
    if parameter.name == "json":
        desk.is_json = desk.is_json or bool(value)
    elif value is not None:
        desk.flags[str(parameter.name)] = value


def shared_options() -> list[click.Option]:
    """The options that stand everywhere."""
    options = [
        click.Option([f"--{name}"], metavar=metavar, help=text, callback=_keep, expose_value=False)
        for name, metavar, text in OPTIONS
    ]
    options.append(click.Option(["--json"], is_flag=True, help="JSON.", callback=_keep, expose_value=False))
    return options


class Command(click.Command):
    """A command with the shared options behind its own."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        own = {one.name for one in self.params}
        self.params += [one for one in shared_options() if one.name not in own]


class Group(click.Group):
    """A group of commands, one a noun. Without a verb it runs `default`."""

    command_class = Command

    def __init__(self, *args: Any, default: str | None = None, **kwargs: Any) -> None:
        kwargs.setdefault("invoke_without_command", default is not None)
        kwargs.setdefault("no_args_is_help", False)  # help is not what was meant by half a command
        super().__init__(*args, **kwargs)
        self.params += shared_options()
        if default is not None:
            self.callback = self._default(default)

    def _default(self, name: str) -> Callable[[], Any]:
        def run() -> Any:
            context = click.get_current_context()
            return context.invoke(self.commands[name]) if context.invoked_subcommand is None else None

        return run

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does it, with a suggestion for what was mistyped."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches

            close = get_close_matches(args[0], self.commands, n=1)
            if close and "Did you mean" not in error.message:
                raise click.UsageError(f"{error.message} Did you mean {close[0]}?", ctx) from None
            raise


Group.group_class = Group
pass_desk: Callable[[Callable[..., Any]], Callable[..., Any]] = click.make_pass_decorator(CliContext, ensure=True)


def noun(name: str, text: str, default: str | None = None) -> Group:
    """A group of commands."""
    return Group(name, help=text, default=default)
