"""Parts that fleets on this machine share: namespaces, a folder with a lock, keys, loop devices, clean-up."""
