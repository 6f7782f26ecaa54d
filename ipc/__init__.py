"""The contract between the gateway's processes: messages, frames, limits, exit codes.

Imports nothing of ours. What only one process needs lives in that process.
"""
