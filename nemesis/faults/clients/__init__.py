"""Faults of what is between clients and brokers by order of an operator: certificates and quotas."""
