"""The anomalies that are looked for, and the register of them all. Every module here is imported before a
history is judged: a new file with a check in it is found by being here."""
