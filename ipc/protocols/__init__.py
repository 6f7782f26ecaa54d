"""Which message may come in which state: the channels of each kind of process, and which two tables are one channel.

A process imports its own channels, and so no message of others.
"""
