"""Our broker in the profiles without controllers."""
