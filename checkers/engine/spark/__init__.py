"""The Spark session: its JVM, a cluster to run on, and what it is at."""
