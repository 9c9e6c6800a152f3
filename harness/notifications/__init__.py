"""Where the outcome of runs goes beside reports: code hosts, metrics, webhooks, storage."""
