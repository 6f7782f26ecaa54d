"""`[[egress.networks]]` in the configuration: kinds of its values, the settings of one network, and what must hold
between them."""

import ipaddress
import re
from collections.abc import Iterator, Mapping
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Any, Final

from ipc.configuration.networks import ClientCertificate, NetworkSettings
from ipc.network.reach import LOOPBACK, NEVER, hidden_in
from ipc.process.private_files import PrivateFileError, look_at_private
from supervisor.settings import value_kinds
from supervisor.settings.kind import PathContext, Wrong, kind
from supervisor.settings.problems import short
from supervisor.settings.sections.section import ArraySection, Found

MAX_NETWORKS: Final = 64
MAX_RULES: Final = 256
"""Domains, ranges and ports of one network, each."""
SHORTEST_PREFIX: Final = {4: 8, 6: 32}
REQUIRED: Final = {
    "name": "Name the network: evidence, logs and operators' views call it so.",
    "domains": 'Name the hosts that lead into it, like ["billing.corp.example", "*.svc.cluster.local"].',
    "ranges": 'Name the addresses that they lead to, like ["10.20.0.0/16"].',
}
"""Settings that every network has, each with what to do where it is missing."""
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


@kind(type="string", pattern=r"^(\*\.)?[a-z0-9.-]+\.[a-z0-9-]+$", maxLength=255)
def domain(value: object, context: PathContext) -> str:
    """A name with a dot, or `*.` before one."""
    mend = 'Use a form like "billing.corp.example" or "*.svc.cluster.local".'
    name = value.removeprefix("*.") if isinstance(value, str) else ""
    try:
        value_kinds.host_name(name, context)
    except Wrong:
        raise Wrong(f"{short(name)} must be a host name in lower case, perhaps after *.", mend) from None
    labels = name.split(".")
    if len(labels) < 2 or labels[-1] == "localhost" or _NUMBER.fullmatch(labels[-1]):
        raise Wrong(f"{name} must be a name with a dot, and no address", mend)
    return str(value)


@kind(type="string", pattern=r"^[0-9a-fA-F.:]+/[0-9]{1,3}$")
def address_range(value: object, _: PathContext) -> str:
    """A range of addresses in CIDR form; returned in the shortest one."""
    mend = 'Use a form like "10.20.0.0/16" or "fd00:20::/64".'
    if not isinstance(value, str) or not re.fullmatch(r"[0-9a-fA-F.:]+/[0-9]{1,3}", value):
        raise Wrong("must be a range of addresses", mend)
    try:
        block = ipaddress.ip_network(value)
    except ValueError as error:
        said = "has bits set behind its prefix" if "host bits" in str(error) else "is no range of addresses"
        raise Wrong(f"{value} {said}", mend) from None
    least = SHORTEST_PREFIX[block.version]
    if block.prefixlen < least:
        raise Wrong(f"{value} is too wide: a prefix of {least} or more is needed", "Name the range of these hosts.")
    if hidden_in(str(block[0])) != block[0]:
        raise Wrong(f"{value} is a range of IPv4 addresses in IPv6 form", "Write the IPv4 range.")
    if any(_is_in(block, never) for never in NEVER):
        raise Wrong(f"{value} is a range that no network may hold", "Remove it.")
    return str(block)


def _is_in(block: IPv4Network | IPv6Network, other: IPv4Network | IPv6Network) -> bool:
    if isinstance(block, IPv4Network):
        return isinstance(other, IPv4Network) and block.subnet_of(other)
    return isinstance(other, IPv6Network) and block.subnet_of(other)


def required(row: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Settings that this table must have, each with what to do where it is missing."""
    yield from (((setting,), mend) for setting, mend in REQUIRED.items())
    if "client_certificate" in row:
        for setting, what in (("certificate_file", "certificate"), ("key_file", "private key of that certificate")):
            yield ("client_certificate", setting), f"Name the {what}, a file in PEM."


def network_settings(row: Mapping[str, Any]) -> NetworkSettings:
    """One checked table -> the settings of a network; for an invalid table, the readable part."""
    given = dict(row)
    pair = given.pop("client_certificate", None)
    certificate = None if pair is None else ClientCertificate(**pair)
    return NetworkSettings(**{"name": ""} | given, client_certificate=certificate)


def check_networks(rows: Mapping[int, Mapping[str, Any]], found: Found) -> None:
    """Find what no network by itself shows: names that are there twice, loopback without ports, files that will not
    do."""
    if len(rows) > MAX_NETWORKS:
        found((), f"{len(rows)} networks, and {MAX_NETWORKS} are the most", "Put hosts of one kind into one network.")
    names = set[str]()
    for index, row in rows.items():
        for setting, text, mend in (*_of_table(row), *_of_files(row)):
            found((index, *setting), text, mend)
        if row.get("name") in names:
            found((index, "name"), f'"{row["name"]}" is there twice', "")
        names.add(row.get("name", ""))


def _of_table(row: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str, str]]:
    for setting in ("domains", "ranges", "ports"):
        if len(row.get(setting, ())) > MAX_RULES:
            yield (setting,), f"{len(row[setting])} of them, and {MAX_RULES} are the most", ""
    blocks = [ipaddress.ip_network(one) for one in row.get("ranges", ())]
    if "ports" not in row and any(
        _is_in(*pair) for block in blocks for loopback in LOOPBACK for pair in ((block, loopback), (loopback, block))
    ):
        yield ("ports",), "is missing, and a range is of this host itself", "Name the ports that may be reached."


def _of_files(row: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """Look at the files of TLS. SECURITY: a key is opened and not read, since the supervisor holds none."""
    mend = "Name a file of certificates that this user may read."
    if "ca_file" in row and not has_certificates(row["ca_file"]):
        yield ("ca_file",), f"{row['ca_file']} can't be read as certificates in PEM", mend
    pair = row.get("client_certificate", {})
    if "certificate_file" in pair and not has_certificates(pair["certificate_file"]):
        text = f"{pair['certificate_file']} can't be read as certificates in PEM"
        yield ("client_certificate", "certificate_file"), text, mend
    if "key_file" in pair:
        try:
            look_at_private(Path(pair["key_file"]))
        except PrivateFileError as error:
            yield ("client_certificate", "key_file"), str(error).removesuffix("."), ""


def has_certificates(path: str) -> bool:
    """True for a file that this user can read as certificates in PEM."""
    from ipc.network.tls import client_context  # few configurations need it

    try:
        client_context(path)
    except OSError:
        return False
    return True


SECTION: Final = ArraySection(required, check_networks, network_settings)
