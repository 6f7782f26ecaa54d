"""`gateway import …`: makes manifests from a description that others publish. A program of its own, for one command.

Reads one description, writes files for a person to review, and ends. Puts nothing in force, holds no key, and asks no
gateway. Guarantees that each manifest it writes passes the checks of frontend/manifests.
"""
