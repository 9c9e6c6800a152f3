"""What is deployed: our own broker, later Apache Kafka."""
