"""Rules of topics and replicas: placement, reassignment, growth, features."""
