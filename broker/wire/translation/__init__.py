"""One translator for all APIs: declarations of messages, and the functions that are made of them."""
