"""Messages between clients, brokers and controllers."""
