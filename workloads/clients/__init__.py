"""Clients of the Kafka protocol as the workloads use them, and the libraries that they are made with.

A workload knows `wrackline.workloads.clients.base` alone. Which library it is made with is a setting
(``workload.client.library``); `wrackline.workloads.clients.libraries` finds it by its name.
"""
