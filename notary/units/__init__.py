"""Operations performed together, in one transaction that is durable with one flush."""
