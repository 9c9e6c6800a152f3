"""Histories in Jepsen's words: EDN and JSON out for elle-cli, Knossos and Jepsen's own checkers, and its
Kafka and Redpanda queue histories in, to be judged like a run of ours."""
