"""The asyncio shell that carries the effects of the core out, and brings events in."""
