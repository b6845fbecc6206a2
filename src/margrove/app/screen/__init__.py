"""Print results, progress, advice and failures for a person."""
