"""The parts of a check: how it is registered, what it is given, and the tasks that call it."""
