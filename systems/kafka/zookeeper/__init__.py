"""ZooKeeper, where Apache Kafka up to 2.8 keeps who leads: the server on its hosts, our own session with it,
and Kafka's nodes in it."""
