"""The receivers of runs' outcomes beside reports: code hosts, metrics, webhooks, storage."""
