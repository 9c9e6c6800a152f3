"""A cluster that was there before the run and stays when it is over: the system ``external``."""
