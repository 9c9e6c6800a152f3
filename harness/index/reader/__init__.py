"""The page that reads whole histories: its script, and what bundles it with the libraries that it needs."""
