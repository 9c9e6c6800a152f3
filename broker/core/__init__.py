"""Pure state machines: ``handle(event, now_ms) -> list[Effect]``. No sockets, clock, random, files or
threads."""
