"""The proving of the judge: correct histories of any size, each anomaly put into them alone, and cases
written by hand.

=============  =============================================================================================
``model``      correct histories. ``knobs`` says what they vary in, and how a seed draws them. ``log_server``
               is a replicated log under load, in numpy: sends, transactions, failovers. ``readers`` has its
               consumers and those who ask for ends, ``group_server`` its groups. ``made`` is such a run in
               the harness' own format. ``objects`` has registers and queues, ``object_events`` their runs
``mutations``  one change of a correct history per anomaly, and per rule of registers and queues;
               ``catalogue`` lists those of logs, ``mutation`` says what else follows from each
``pairs``      a pair of lines per anomaly in the language of cases (wrackline.checkers.cases): one that has
               it, and its nearest neighbour that has not, in ``pairs.txt``.
               ``splicing`` puts a case among the events of a correct history
``rules``      the rules of linearizability in numpy, on events: the second witness
=============  =============================================================================================

The wheel does not have this wing: it needs a checkout.

::

    made = make("night-1", seed=7, knobs=Knobs(operations=100_000))
    made.write(Path("results/night-1"))              # then: wrackline analyze results/night-1
"""
