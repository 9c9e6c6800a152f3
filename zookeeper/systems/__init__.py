"""Systems whose metadata is in ZooKeeper, and its servers."""
