"""The common part of fleets of virtual machines."""
