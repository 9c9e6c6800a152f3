"""Kafka wire protocol: frames and kio entities on one side, `broker.core.messages` on the other."""
