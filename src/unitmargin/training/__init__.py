"""Training: one loop, its losses, schedules and optimisers, exact resume."""
