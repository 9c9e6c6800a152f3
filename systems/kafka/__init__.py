"""Apache Kafka in KRaft mode as the system under test."""
