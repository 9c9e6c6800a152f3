"""The traces of real brokers, judged by the invariants of simulated ones.

A trace has what each node did, in its own order (docs/broker.md "Trace"). Put together they are replayed as a
world of which the invariants of ``wrackline.simulator.invariants`` see what they see of a simulated one.
"""
