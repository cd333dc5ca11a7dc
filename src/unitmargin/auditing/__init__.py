"""What each layer and head promises, measured."""
