"""The front's end of the channel to the notary: what is asked there, and how it is asked again after a crash."""
