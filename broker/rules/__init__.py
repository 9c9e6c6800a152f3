"""The protocol's decisions, one small pure function each, gathered in classes that a profile combines.

    isr               who joins the ISR and who lags; what the controller takes of a leader's proposal
    watermark         what is committed: the candidate of the high watermark, and when it may advance
    epoch_end         where a leader epoch ends in a log
    truncation        where a follower cuts its log
    fetching          which answers of its leader a follower takes
    reads             who may read what from a leader
    produce           may a batch be appended, and how it is answered
    sessions          epochs and slots of fetch sessions
    election          who leads
    eligible          who is in the ELR and in the LastKnownELR
    recovery          unclean recovery: which answers count, which log is the best
    registration      was a shutdown clean; sessions, heartbeats, fencing
    reassign          how a partition moves to other replicas
    rebalance         when the preferred replica leads again
    placement, growth where replicas go, and what new brokers take over
    topics            names and settings of topics
    raft, snapshots   the controller quorum and its log
    features          which level the metadata may have, while a cluster goes from one profile to another
    zookeeper         who runs for leader in profile zk08, and what its leader does with ISR, CUR and RAR
    profile           which rule of each kind holds; earlier_profiles has those of former Kafka versions

Each file has its golden table, facts left and right decision right, in ``tests/broker/rules/golden/``. Where
the five that all else rests on are carried out is in docs/this-code-in-an-hour.md, "Five decisions".
"""
