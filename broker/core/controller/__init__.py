"""The active controller: who leads, who is in the ISR, what administrators ask."""
