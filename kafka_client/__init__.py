"""The Kafka client of the harness itself and of ``wrackline-broker admin``."""
