"""The gateway from start to exit: lifecycle, state directory, sockets, reloads, stop."""
