"""Virtual machines on this machine, by QEMU: the fleet ``qemu``."""
