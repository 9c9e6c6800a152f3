"""Many runs: to the first violation, over many seeds, and smaller while they still fail."""
