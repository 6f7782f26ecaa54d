"""The front's side of the workers: one channel each, one pool per profile.

Never starts or stops a process: it asks the supervisor for workers and for the end of those that broke their word.
"""
