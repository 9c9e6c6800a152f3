"""The ZooKeeper era: profiles zk08 and zk08-kip101, Kafka up to 2.8, and the way to a controller (KIP-866).

It stands on the other folders, and none of them imports it: a profile, a system or a fault of that era is
found by name where a specification, or a run of the simulator, asks for it.
"""
