"""The host calls of a provider (HTTP, files, log, clock), and the walls around each of them."""
