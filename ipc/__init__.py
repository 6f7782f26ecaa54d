"""The contract between the gateway's processes: messages, frames, limits, exit codes.

Imports no other package of the project. Code of a single process lives in the package of that process.
"""
