"""Running chains: schedules, processes, progress, snapshots, and what is stored of the draws."""
