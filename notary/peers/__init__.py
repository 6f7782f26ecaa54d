"""The notary's ends of its channels to fronts and workers, and the calls that are under way between them."""
