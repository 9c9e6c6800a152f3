"""What proves the checkers: correct histories of any size, each anomaly put into them alone, and a language
of cases.

==================  ========================================================================================
``knobs``           what the correct histories vary in, and how a seed draws them
``log_server``      a model of a correct replicated log under load, in numpy: sends, transactions, failovers
``readers``         its consumers and those who ask for ends; ``group_server``: its groups of members that
                    commit
``made``            such a run as a history: events in the harness' own format
``mutations``       one change per anomaly of the registry; what else follows from it: ``mutation``
``objects``         a model of correct registers and queues, as histories: ``object_events``
``mutate_objects``  one change per rule of registers and queues
``language``        cases written by hand, in a line
==================  ========================================================================================

::

    made = make("night-1", seed=7, knobs=Knobs(operations=100_000))
    made.write(Path("results/night-1"))              # then: wrackline analyze results/night-1
"""
