"""Incidents: all that was found of one cause (docs/anomalies.md, section 9).

What loses eight records is found as eight lost writes, eight reads that vanished, eight offsets with two
values and a log without a valid order. It is one incident, and these are its evidence.
"""
