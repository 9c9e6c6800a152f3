"""The memory of many nights: a static site of all runs, and what two of them have apart."""
