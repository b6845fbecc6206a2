"""``margrove images`` and the views of its models."""
