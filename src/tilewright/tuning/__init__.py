"""Fast programs: of one task (`tuner`), of one that nobody tuned (`untuned`), of networks (`task_scheduler`)."""
