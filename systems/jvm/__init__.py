"""Programs on a JVM: installed releases, their start on this machine and on hosts, logging, faked time."""
