"""The release of ZooKeeper that runs, and the Maven artifacts that make it run."""

from __future__ import annotations

from wrackline.maven import Artifact
from wrackline.systems.jvm.logging import OLD_LOG4J, RELOAD4J

VERSION = "3.5.9"
"""The server that every broker is given: the one that Kafka 2.8 was released with."""
ARTIFACTS = (Artifact("org.apache.zookeeper", "zookeeper", VERSION, without=OLD_LOG4J), RELOAD4J)
