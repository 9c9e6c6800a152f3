"""What can be done to a cluster: network, processes, power, growth."""
