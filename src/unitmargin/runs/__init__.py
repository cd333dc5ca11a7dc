"""A run: its recipe, its folder, and one file of code for each file in it."""
