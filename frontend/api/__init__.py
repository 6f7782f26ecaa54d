"""What the front answers: the table of endpoints, how one is found, called and described."""
