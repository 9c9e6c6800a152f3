"""librdkafka, by confluent-kafka."""
