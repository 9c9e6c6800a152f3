"""From events to facts."""
