"""What is deployed: our own broker, or Apache Kafka."""
