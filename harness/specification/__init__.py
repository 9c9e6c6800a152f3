"""What a run is asked to be: one YAML file, its parts, its schema and its mistakes."""
