"""What is deployed: our own broker, or Apache Kafka."""

from wrackline import import_kio

import_kio()
