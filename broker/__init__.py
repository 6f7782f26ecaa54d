"""The broker: fetches what calls need from outside and may be kept, for fronts alone."""
