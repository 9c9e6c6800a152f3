"""Record batches: their bytes, their checks, their producers."""
