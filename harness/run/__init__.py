"""One run: plan, deploy, drive, break, heal, read, judge (docs/architecture.md section 6)."""
