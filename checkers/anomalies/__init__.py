"""What is looked for, and the register of it all. Every module here is imported before a history is judged: a
new file with a check in it is found by being here."""
