"""Random faults: their words, the plan of a run, and who carries it out."""
