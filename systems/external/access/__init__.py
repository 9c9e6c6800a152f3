"""How the harness and its clients are let into a cluster: TLS and SASL."""
