"""Kafka wire protocol: frames and kio entities on one side, `wrackline.broker.core.messages` on the other."""
