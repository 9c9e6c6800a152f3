"""What each voter of a quorum owes the others, looked at as a run goes."""
