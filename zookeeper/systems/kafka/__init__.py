"""Apache Kafka up to 2.8, which keeps in ZooKeeper who leads."""
