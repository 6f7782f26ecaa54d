"""Domain names that effects may go to: one normal form, wildcard rules, matching.

A name is lower case, has a dot, is no IP literal in any spelling and no localhost; names of other scripts are kept in
their IDNA form. Guarantees that what matches here is byte for byte what is connected to. Never resolves a name.
"""

import re

import idna

MAX_NAME_LENGTH = 253
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_PLAIN = re.compile(rf"{_LABEL}(?:\.{_LABEL})+")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_IDNA_LABEL = "xn--"


class InvalidDomain(ValueError):
    """No domain name that effects may go to; the message says why and never holds the name."""


def normal_domain(name: str) -> str:
    """The form in which `name` is compared, shown and connected to: lower case, IDNA. Raises InvalidDomain."""
    plain = name if _PLAIN.fullmatch(name) and _IDNA_LABEL not in name else _encoded(name)
    if len(plain) > MAX_NAME_LENGTH:
        raise InvalidDomain(f"is longer than {MAX_NAME_LENGTH} characters")
    if not _PLAIN.fullmatch(plain):
        raise InvalidDomain("must be a domain name with a dot")
    last = plain.rpartition(".")[2]
    # SECURITY: every spelling of an IPv4 address (decimal, octal, hexadecimal, shortened) ends in a number.
    if _NUMBER.fullmatch(last):
        raise InvalidDomain("is an IP address")
    if last == "localhost":
        raise InvalidDomain("is a name of this host")
    return plain


def normal_rule(rule: str) -> str:
    """The normal form of an allow-list entry: a domain, or `*.` before a domain. Raises InvalidDomain."""
    if rule.startswith("*."):
        return "*." + normal_domain(rule[2:])
    return normal_domain(rule)


def _encoded(name: str) -> str:
    if not name or len(name) > MAX_NAME_LENGTH or name.endswith("."):
        raise InvalidDomain("must be a domain name with a dot")
    try:
        return idna.encode(name, uts46=True, std3_rules=True).decode("ascii")
    except (idna.IDNAError, UnicodeError):
        raise InvalidDomain("must be a domain name with a dot") from None
