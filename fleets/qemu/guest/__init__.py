"""The programs inside a virtual machine; on the standard library alone."""
