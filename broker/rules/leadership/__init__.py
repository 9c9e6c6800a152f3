"""Rules of leadership: elections, recovery, Raft, registration, sessions."""
