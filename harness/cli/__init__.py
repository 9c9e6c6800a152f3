"""The command ``wrackline``: one file a group of commands."""
