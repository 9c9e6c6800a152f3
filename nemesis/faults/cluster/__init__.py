"""Faults by administration: elections, configuration, growth, removal, sessions."""
