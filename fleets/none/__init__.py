"""The fleet ``none`` without hosts, for systems that run already."""
