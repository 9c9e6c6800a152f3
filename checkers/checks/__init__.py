"""What a check is: how it is registered, what it is given, and the tasks that call it."""
