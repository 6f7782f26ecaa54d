"""Operations: what the notary can be asked, one class each, with the type of its answer."""
