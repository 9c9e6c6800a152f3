"""kafka-clients, Apache Kafka's own library, in a JVM inside this process (JPype)."""
