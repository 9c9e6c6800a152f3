"""Kafka wire protocol: frames and kio entities on one side, `wrackline.broker.model.messages.requests` on the
other."""
