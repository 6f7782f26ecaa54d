"""The endpoints of a front: their table, and how one is found, called and described."""
