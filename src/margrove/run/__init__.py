"""Running a solve: effort, slices of time, progress, checkpoints, threads and atomic files."""
