"""The specification of a run: one YAML file, its parts, its schema and its mistakes."""
