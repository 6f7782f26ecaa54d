"""The front: the process that talks to the network. Authenticates, decides, signs, records; never executes."""
