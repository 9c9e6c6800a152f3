"""The reads at the end of a run: replicas, second readers, the ISR."""
