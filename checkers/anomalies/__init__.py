"""What is looked for: a file for each family of anomalies, and the register of them all."""
