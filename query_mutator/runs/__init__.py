"""What a run is made of and leaves on the disk: settings, task, checkpoints, log, metrics."""
