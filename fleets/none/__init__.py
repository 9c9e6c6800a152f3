"""No hosts at all: the fleet ``none``, for systems that run already."""
