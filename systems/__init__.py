"""Systems that are deployed: our own broker, or Apache Kafka."""
