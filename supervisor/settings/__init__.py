"""The configuration file: read, checked by one table, turned into `ipc.settings`."""
