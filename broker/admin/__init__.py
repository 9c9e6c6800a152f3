"""Administration from the command line: ``wrackline-broker admin``, a client like any other."""
