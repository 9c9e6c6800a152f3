"""Wrackline: a test harness for replicated brokers that speak Kafka's protocol, and a broker of its own."""
