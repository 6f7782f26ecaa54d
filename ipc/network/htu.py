"""The `htu` claim: one normal form for the URI in a proof and for the URI of the request.

Fragment and query are dropped, scheme and host are lower case, the default port is dropped, a bare authority gets `/`
(RFC 9449 §4.3, RFC 3986 §6.2.2). The path is compared as it stands: percent-encoding and dots are never touched.
"""

_DEFAULT_PORTS = {"http": ":80", "https": ":443"}


def normalise_htu(uri: str) -> str:
    """The normal form of an absolute http or https URI. Raises ValueError for anything else."""
    # Beyond ASCII, lower() maps foreign letters onto ours (U+212A becomes k): a URI holds none (RFC 3986 §2).
    if not uri.isascii():
        raise ValueError("not ASCII")
    uri = without_query(uri)
    scheme, _, rest = uri.partition("://")
    scheme = scheme.lower()
    default_port = _DEFAULT_PORTS.get(scheme)
    if default_port is None:
        raise ValueError("not an absolute http or https URI")
    authority, slash, path = rest.partition("/")
    authority = authority.lower().removesuffix(default_port)
    if not authority:
        raise ValueError("no host")
    return f"{scheme}://{authority}/{path}" if slash else f"{scheme}://{authority}/"


def without_query(uri: str) -> str:
    """`uri` up to its query or fragment."""
    if "#" in uri:
        uri = uri.partition("#")[0]
    if "?" in uri:
        uri = uri.partition("?")[0]
    return uri
