"""Faults of ZooKeeper, and schedules for the versions of Apache Kafka that need it."""
