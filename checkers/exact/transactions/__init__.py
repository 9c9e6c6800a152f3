"""Transactions over registers and lists: are they serializable, in an order in keeping with real time?"""
