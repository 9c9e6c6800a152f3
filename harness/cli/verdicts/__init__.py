"""Commands that judge, show and compare what runs have come to."""
