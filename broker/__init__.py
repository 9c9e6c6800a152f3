"""The replicated broker under test: Kafka's replication protocol behind Kafka's wire protocol."""
