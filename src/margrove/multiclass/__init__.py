"""Many classes by codes (THEORY C1–C3): one-vs-rest, one-vs-one and bit strings, for any margin classifier."""
