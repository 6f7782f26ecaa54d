"""The notary: the process that alone records and signs. It talks to fronts and supervisor, and to no host outside."""
