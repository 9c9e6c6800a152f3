"""The log on disk: segments of Kafka record batches, checkpoints, crash recovery."""
