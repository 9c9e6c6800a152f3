"""TLS, SASL and ACLs of an Apache Kafka that is deployed."""
