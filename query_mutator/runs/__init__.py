"""What a run is and leaves on disk: its settings, task, directory, checkpoints, log and metrics."""
