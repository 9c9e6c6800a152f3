"""What the findings mean: contracts, the conditions of a pass, and the verdict."""
