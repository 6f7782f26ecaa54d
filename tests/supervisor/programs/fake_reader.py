"""A reader that lives until its front says something or goes away."""

import socket
import sys


def main() -> None:
    channel = socket.socket(fileno=int(sys.argv[sys.argv.index("--channel-fd") + 1]))
    channel.recv(1)


main()
