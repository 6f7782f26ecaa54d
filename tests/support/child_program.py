"""The beginning of a program that plays a process of the supervisor's."""

import argparse
import socket

from ipc.process.parent import die_with_parent


def played_child() -> socket.socket:
    """End with the parent that started this program; the socket whose other end is the parent's."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--control-fd", type=int, required=True)
    parser.add_argument("--parent", type=int, required=True)
    options = parser.parse_args()
    die_with_parent(options.parent)
    return socket.socket(fileno=options.control_fd)
