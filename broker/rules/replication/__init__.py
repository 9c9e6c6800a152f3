"""Rules of replication: ISR, high watermark, truncation, fetches, produce."""
