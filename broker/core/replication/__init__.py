"""How replicas of a partition copy, count and cut: leaders, followers and their logs."""
