"""What a notary does between units by itself, in rounds and a slice at a time."""
