"""What a provider may ask of its host (HTTP, files, log, clock), and the walls around each of them."""
