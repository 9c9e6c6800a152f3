"""The broker of profile zk08: the ZooKeeper design (docs/protocol.md 1.1, 2.15), without any controller."""
