"""systemd: passed sockets, notifications, watchdog, status line, cgroups."""
