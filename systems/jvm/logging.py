"""Logging of a Java server: every line on its standard output, in one layout for both generations of the
library."""

from __future__ import annotations

from pathlib import Path

from wrackline.maven import Artifact

RELOAD4J = Artifact("org.slf4j", "slf4j-reload4j", "1.7.36")
OLD_LOG4J = (("org.slf4j", "slf4j-log4j12"), ("log4j", "log4j"))
"""What it stands in for: artifacts that a server's own POM brings, and that nobody mends any more."""
LOG4J2_XML = """<?xml version="1.0" encoding="UTF-8"?>
<Configuration status="WARN" shutdownHook="disable">
  <Appenders>
    <Console name="stdout"><PatternLayout pattern="[%d] %p %m (%c)%n"/></Console>
  </Appenders>
  <Loggers><Root level="info"><AppenderRef ref="stdout"/></Root></Loggers>
</Configuration>
"""
"""Of 4.0 and later. Without ``shutdownHook`` the last lines of a shutdown would be lost."""
LOG4J_PROPERTIES = """log4j.rootLogger=INFO, stdout
log4j.appender.stdout=org.apache.log4j.ConsoleAppender
log4j.appender.stdout.layout=org.apache.log4j.PatternLayout
log4j.appender.stdout.layout.ConversionPattern=[%d] %p %m (%c)%n
"""
"""Of versions before 4.0."""
LOGGING = {"log4j2.xml": LOG4J2_XML, "log4j.properties": LOG4J_PROPERTIES}


def logging_options(folder: Path | str) -> list[str]:
    """Options of the JVM: each generation of the library knows one of them and passes the other over."""
    return [
        f"-Dlog4j2.configurationFile={folder}/log4j2.xml",
        f"-Dlog4j.configuration=file:{folder}/log4j.properties",
    ]


def write_logging(folder: Path) -> None:
    for name, content in LOGGING.items():
        (folder / name).write_text(content)
