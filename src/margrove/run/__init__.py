"""How a solve runs: its effort, slices of time, progress, checkpoints, threads and atomic files."""
