"""Many classes by codes: one-vs-rest, one-vs-one and bit strings, for any margin classifier."""
