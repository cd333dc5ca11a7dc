"""What every layer owes, and the layers without a stored weight."""
