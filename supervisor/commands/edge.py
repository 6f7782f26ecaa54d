"""`gateway edge`: serve agents on other hosts over TLS, a process of its own that is a client of the client socket."""

import argparse
import ipaddress
import os
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import msgspec

from ipc.configuration.edge_settings import EdgeSettings
from ipc.process.exits import Exit
from supervisor.commands import Commands
from supervisor.programs import INTERPRETER
from supervisor.refusal import Refused
from supervisor.settings.kind import PathContext, Wrong
from supervisor.settings.sections.addresses import base_url, split_address
from supervisor.sockets import listen_tcp

_MODULE = "edge.main"
_MAX_BYTES = 65_536


def add(commands: Commands) -> None:
    """Put `edge` beside the other commands."""
    edge = commands.add_parser(
        "edge",
        help="serve agents on other hosts over TLS",
        description="Serve the endpoints of the client socket over TLS, HTTP/1.1 and HTTP/2. It holds no key of the "
        "gateway: proofs are made for public_base_url and pass as they are.",
    )
    edge.add_argument("--config", type=Path, required=True, metavar="FILE", help="its configuration, edge.toml")
    edge.add_argument("--check", action="store_true", help="check configuration and certificate; start nothing")
    edge.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    settings = _settings(options.config)
    arguments = ["--settings", msgspec.json.encode(settings).decode()]
    if settings.mcp is not None:
        arguments += ["--client-library", _client_library(options.config)]
    if not options.check:
        listener = listen_tcp(settings.listen, "edge")
        os.set_inheritable(listener.sock.fileno(), True)
        arguments += ["--listen-fd", str(listener.sock.fileno()), "--address", listener.address]
    sys.stdout.flush()
    os.execv(sys.executable, [*INTERPRETER, _MODULE, *arguments])  # noqa: S606 - our own interpreter and module


def _client_library(file: Path) -> str:
    """The folder that has the client library. Raises Refused."""
    found = find_spec("gateway_client")
    if found is None or found.origin is None or find_spec("mcp") is None:
        mend = "pip install './sdk[mcp]' in a clone of the repository"
        raise Refused(Exit.CONFIG, f"{file}: [mcp] needs the client library with its extra mcp: {mend}.")
    return str(Path(found.origin).parents[1])


def _settings(file: Path) -> EdgeSettings:
    """The checked settings, each path whole. Raises Refused."""
    try:
        with file.open("rb") as opened:
            raw = opened.read(_MAX_BYTES + 1)
        if len(raw) > _MAX_BYTES:
            raise Refused(Exit.CONFIG, f"{file} is larger than {_MAX_BYTES} bytes.")
        settings = msgspec.convert(tomllib.loads(raw.decode()), EdgeSettings)
        host, _ = split_address(settings.listen)
        public_base_url = base_url(settings.public_base_url, PathContext(file.parent, {}))
    except OSError as error:
        raise Refused(Exit.CONFIG, f"{file}: {error.strerror}.") from None
    except Wrong as wrong:
        raise Refused(Exit.CONFIG, f"{file}: public_base_url {wrong.what}. {wrong.mend}") from None
    except msgspec.ValidationError as error:
        raise Refused(Exit.CONFIG, f"{file}: {error}.") from None
    except tomllib.TOMLDecodeError as error:
        raise Refused(Exit.CONFIG, f"{file}: {error}.") from None
    except UnicodeDecodeError:
        raise Refused(Exit.CONFIG, f"{file} is not UTF-8. Save it as UTF-8.") from None
    except ValueError:
        raise Refused(Exit.CONFIG, f"{file}: listen must be ADDRESS:PORT, like 0.0.0.0:8443.") from None
    tls = settings.tls
    if tls is None and not ipaddress.ip_address(host).is_loopback:
        raise Refused(Exit.CONFIG, f"{file}: listen {settings.listen} leaves this host, and needs [tls].")
    if tls is not None and tls.require_client_certificate and tls.client_ca_file is None:
        raise Refused(Exit.CONFIG, f"{file}: require_client_certificate needs client_ca_file.")
    folder = file.resolve().parent
    if tls is not None:
        tls = msgspec.structs.replace(
            tls,
            certificate_file=str(folder / tls.certificate_file),
            key_file=str(folder / tls.key_file),
            client_ca_file=None if tls.client_ca_file is None else str(folder / tls.client_ca_file),
        )
    return msgspec.structs.replace(
        settings, public_base_url=public_base_url, client_socket=str(folder / settings.client_socket), tls=tls
    )
