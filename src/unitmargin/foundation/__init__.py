"""What every other room stands on: choosing by name, and files that appear whole."""
