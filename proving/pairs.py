"""Cases in a line (see ``language``): for every anomaly one that has it, and its nearest neighbour that has
not."""

from __future__ import annotations

PAIRS: dict[str, tuple[str, str]] = {
    "lost-write": (
        "p: a@0 | p: b@1 | final a@0",
        "p: a@0 | p: b? | final a@0",
    ),
    "lost-write of the last record of a key": (
        "p: a@0 of x | p: b@1 of y | p: c@2 of y | final b@1 c@2",
        "p: a@0 of x | p: b@1 of x | p: c@2 of y | final b@1 c@2",
    ),
    "lost-write of a key whose next record was never acknowledged": (
        "p: a@0 of x | q: b? of x | p: c@2 of y | final c@2",
        "p: a@0 of x | q: b? of x | p: c@2 of y | final b@1 c@2",
    ),
    "lost-write of the last record of a key, where records were deleted": (
        "p: a@0 of x | p: b@1 of y | p: c@2 of z | final c@2 from 1",
        "p: a@0 of x | p: b@1 of y | p: c@2 of z | final c@2 from 2",
    ),
    "vanished-read of the last record of a key": (
        "p: (a of x | q: b@1 of y | c: from 0 | c: got a@0 b@1 | final b@1",
        "p: (a of x | q: b@1 of x | c: from 0 | c: got a@0 b@1 | final b@1",
    ),
    "lost-on-replica of the last record of a key": (
        "p: a@0 of x | p: b@1 of y | final a@0 b@1 | n1 holds a@0 b@1 | n2 holds b@1",
        "p: a@0 of x | p: b@1 of x | final a@0 b@1 | n1 holds a@0 b@1 | n2 holds b@1",
    ),
    "lost-on-replica of a key whose next record only replicas have": (
        "p: a@0 of x | q: b? of y | final a@0 to 2 short | n1 holds a@0 b@1 | n2 holds b@1",
        "p: a@0 of x | q: b? of x | final a@0 to 2 short | n1 holds a@0 b@1 | n2 holds b@1",
    ),
    "vanished-read": (
        "p: (a | q: (b | c: from 0 | c: got a@0 b@1 | final a@0",
        "p: (a | q: (b | c: from 0 | c: got a@0 b@1 | final a@0 to 2 short",
    ),
    "lost-committed": (
        "p: a@0 | p: b? | e: end 2 | final a@0",
        "p: a@0 | p: b? | e: end 2 | final a@0 to 2 short",
    ),
    "lost-committed, shown by a final read that was begun before": (
        "p: (a | q: (b | final a@0 to 2 short | final a@0",
        "p: (a | q: (b | final a@0 | e: end 2",
    ),
    "lost-on-replica of a record of unknown outcome": (
        "p: z@0 | p: a? | final z@0 a@1 | n1 holds z@0 a@1 hw 2 | n2 holds z@0 hw 1",
        "p: z@0 | p: a? | final z@0 a@1 | n1 holds z@0 a@1 hw 2 | n2 holds z@0 hw 1 out",
    ),
    "lost-on-replica, looked at once it was committed": (
        "p: z@0 | p: a? | final z@0 a@1 | n2 holds z@0",
        "p: z@0 | p: a? | n2 holds z@0 | final z@0 a@1",
    ),
    "lost-on-replica below the end of the final read": (
        "p: z@0 | p: a? | final z@0 a@1 | n2 holds z@0",
        "p: z@0 | p: a? | final z@0 | n2 holds z@0",
    ),
    "lost-on-replica": (
        "p: a@0 | final a@0 | n1 holds a@0 | n2 holds",
        "p: a@0 | final a@0 | n1 holds a@0 | n2 holds out",
    ),
    "inconsistent-offset": (
        "p: (a | q: (b | c: from 0 | c: got a@0 | d: from 0 | d: got b@0",
        "p: (a | q: (b | c: from 0 | c: got a@0 | d: from 0 | d: got a@0 b@1",
    ),
    "replica-divergence": (
        "p: (a | q: (b | n1 holds a@0 | n2 holds b@0",
        "p: (a | q: (b | n1 holds a@0 | n2 holds b@0 hw 0",
    ),
    "duplicate": (
        "p: a@0 | final a@0 a@1",
        "p: a@0 | q: b@1 | final a@0 b@1",
    ),
    "batch-order": (
        "p: a@1 b@0 | final b@0 a@1",
        "p: a@0 b@1 | final a@0 b@1",
    ),
    "batch-order of unknown outcome": (
        "p: a? b? | final b@0 a@1",
        "p: a? b? | final a@0 b@1",
    ),
    "batch-order where one alone was told its place": (
        "q: (c | p: a@2 b? | final b@0 c@1 a@2",
        "p: a@0 b? | q: c@1 | final a@0 c@1 b@2",
    ),
    "batch-order of a send that never completed": (
        "p: (a b c | final a@0 c@1 b@2",
        "p: (a b c | final a@0 c@1",
    ),
    "batch-order, where a copy is no disorder": (
        "p: (a b | q: d@0 | final d@0 b@1 a@2",
        "p: (a b@1/? | q: d@0 | final d@0 a@1 | final b@1/0",
    ),
    "aborted-read": (
        "p: a! | final a@0",
        "p: a? | final a@0",
    ),
    "phantom": (
        "p: a@0 | final a@0 z@1",
        "p: a@0 | q: (z | final a@0 z@1",
    ),
    "misrouted": (
        "p: (a | q: (b@1/? | final a@0 b@1",
        "p: (a | q: (b@1/? | final a@0 | final b@1/0",
    ),
    "corrupt": (
        "p: (a | c: from 0 | c: got #@0",
        "p: (a | c: from 0 | c: got a@0",
    ),
    "epoch-order": (
        "p: a@0 b@1 | final a@0^2 b@1^1",
        "p: a@0 b@1 | final a@0^1 b@1^2",
    ),
    "append-order": (
        "p: a@1 | q: b@0 | final b@0 a@1",
        "p: (a | q: b@0 | p: a@1) | final b@0 a@1",
    ),
    "session-order": (
        "p: a@1 | p: b@0 | final b@0 a@1",
        "p: b@0 | p: a@1 | final b@0 a@1",
    ),
    "wrong-offset of a compacted topic": (
        "p: a@1 of k | final a@0",
        "p: a@1 of k | p: b@2 of k | final b@2",
    ),
    "wrong-offset": (
        "p: a@5 | final a@0",
        "p: a@0 | final a@0",
    ),
    "wrong-offset of a poll": (
        "p: (a | c: from 5 | c: got a@5 | final a@0",
        "p: (a | c: from 0 | c: got a@0 | final a@0",
    ),
    "wrong-offset of a poll, of what was acked rightly": (
        "p: a@0 | c: from 5 | c: got a@5 | final a@0",
        "p: a@0 | c: from 0 | c: got a@0 | final a@0",
    ),
    "append-order of acks without offsets": (
        "p: a+ | q: b+ | final b@0 a@1",
        "p: (a | q: b+ | p: a+) | final b@0 a@1",
    ),
    "append-order below an ack without an offset": (
        "p: a+ | q: b@0 | final b@0 a@1",
        "p: a? | q: b@0 | final b@0 a@1",
    ),
    "append-order of unknown outcome, below an ack without an offset": (
        "p: a+ | q: b? | final b@0 a@1",
        "p: a? | q: b+ | final b@0 a@1",
    ),
    "session-order of acks without offsets": (
        "p: a+ | p: b+ | final b@0 a@1",
        "p: a+ | p: b+ | final a@0 b@1",
    ),
    "session-order, the earlier one without an offset": (
        "p: a+ | p: b@0 | final b@0 a@1",
        "p: a+ | p: b@1 | final a@0 b@1",
    ),
    "session-order, the later one of unknown outcome": (
        "p: a@1 | p: b? | final b@0 a@1",
        "p: a@0 | p: b? | final a@0 b@1",
    ),
    "poll-skip": (
        "p: a@0 b@1 c@2 | k: from 0 | k: got a@0 c@2",
        "p: a@0 b@1 c@2 | k: from 0 | k: got a@0 | k: from 2 | k: got c@2",
    ),
    "poll-rewind": (
        "p: a@0 b@1 | c: from 0 | c: got a@0 b@1 | c: got b@1",
        "p: a@0 b@1 | c: from 0 | c: got a@0 b@1 | c: from 1 | c: got b@1",
    ),
    "stale-read of a record acknowledged without an offset": (
        "p: a+ | e: end 0 | final a@0",
        "p: a+ | e: end 1 | final a@0",
    ),
    "stale-read": (
        "p: a@0 | p: b@1 | e: end 1 | final a@0 b@1",
        "p: a@0 | e: (end 0 | p: b@1 | e: end 1) | final a@0 b@1",
    ),
    "stale-end": (
        "p: a@0 | p: b@1 | e: end 2 | final a@0 b@1 to 1",
        "p: a@0 | p: b? | final a@0 b@1 to 1",
    ),
    "stale-end, told again when more had been read": (
        "p: a@0 | p: b? | final a@0 b@1 to 1 | final to 1",
        "p: a@0 | p: b? | final a@0 to 1 | final b@1 to 2",
    ),
    "future-read": (
        "c: from 0 | c: got a@0 | p: a@0 | final a@0",
        "c: from 0 | p: (a | c: got a@0 | p: a@0) | final a@0",
    ),
    "watermark-regression": (
        "p: (a | q: (b | e: end 2 | e: end 1 | final a@0 b@1",
        "p: (a | q: (b | e: (end 0 | f: end 2 | e: end 1) | final a@0 b@1",
    ),
    "not-linearizable": (
        "p: a@0 | e: end 2",
        "p: a@0 | q: (b | e: end 2",
    ),
    "write-cycle": (
        "p: (txn 1 a b@1/? | q: (txn 2 c d@1/? | p: txn 1 a@0 b@1/1) | q: txn 2 c@1 d@1/0) "
        "| final a@0 c@1 | final d@1/0 b@1/1",
        "p: (txn 1 a b@1/? | q: (txn 2 c d@1/? | p: txn 1 a@0 b@1/0) | q: txn 2 c@1 d@1/1) "
        "| final a@0 c@1 | final b@1/0 d@1/1",
    ),
    "write-cycle through real time": (
        "p: (txn 1 a b@1/? | q: txn 2 c@1 | r: txn 3 d@1/0 | p: txn 1 a@0 b@1/1) | final a@0 c@1 | final "
        "d@1/0 b@1/1",
        "p: (txn 1 a b@1/? | q: (txn 2 c | r: txn 3 d@1/0 | q: txn 2 c@1) | p: txn 1 a@0 b@1/1) "
        "| final a@0 c@1 | final d@1/0 b@1/1",
    ),
    "write-cycle of transactions, not of sends": (
        "p: (txn 1 a b | q: txn 2 c@1 | p: txn 1 a@0 b@2) | final a@0 c@1 b@2",
        "p: (a b | q: c@1 | p: a@0 b@2) | final a@0 c@1 b@2",
    ),
    "read-cycle": (
        "p: (txn 1 a got | q: (txn 2 b@1/? got | p: txn 1 a@0 got b@1/0) | q: txn 2 b@1/0 got a@0)",
        "p: (txn 1 a got | q: (txn 2 b@1/? got | p: txn 1 a@0 got) | q: txn 2 b@1/0 got a@0)",
    ),
    "read-cycle of three, of which two follow each other in real time": (
        "p: (txn 3 c got | q: (txn 1 a got | q: txn 1 a@0 got c@1) | r: (txn 2 b@1/? got | r: txn 2 b@1/0 "
        "got a@0) | p: txn 3 c@1 got b@1/0)",
        "p: (txn 3 c got | q: (txn 1 a got | q: txn 1 a@0 got) | r: (txn 2 b@1/? got | r: txn 2 b@1/0 "
        "got a@0) | p: txn 3 c@1 got b@1/0)",
    ),
    "write-read-cycle": (
        "p: (txn 1 a got | q: (txn 2 b c@1/? got | p: txn 1 a@0 got c@1/0) | q: txn 2 b@1 c@1/0 got)",
        "p: (txn 1 a got | q: (txn 2 b c@1/? got | p: txn 1 a@1 got c@1/0) | q: txn 2 b@0 c@1/0 got)",
    ),
    "precommitted-read": (
        "p: txn 1 a@0 got a@0 | q: txn 2 b@1 got a@0 | final a@0 b@1",
        "p: txn 1 a@0 got | q: txn 2 b@1 got a@0 | final a@0 b@1",
    ),
    "precommitted-read of another consumer": (
        "p: (txn 1 a | c: from 0 | c: got a@0 | p: txn 1 a@0 commit) | final a@0",
        "p: (txn 1 a commit | c: from 0 | c: got a@0 | p: txn 1 a@0) | final a@0",
    ),
    "precommitted-read of another transaction": (
        "p: (txn 1 a | q: txn 2 b@1 got a@0 | p: txn 1 a@0 commit) | final a@0 b@1",
        "p: (txn 1 a | q: (txn 2 b commit got | p: txn 1 a@0 commit) | q: txn 2 b@1 got a@0) | final a@0 b@1",
    ),
    "precommitted-read of offsets": (
        "q: z@0 | p: (txn 1 a | c: (commit 1 txn 1 | o: committed 1 | p: txn 1 a@1 commit) "
        "| c: commit 1 txn 1) | final z@0 a@1",
        "q: z@0 | p: (txn 1 a commit | c: (commit 1 txn 1 | o: committed 1 | p: txn 1 a@1) "
        "| c: commit 1 txn 1) | final z@0 a@1",
    ),
    "precommitted-read of offsets whose commit nobody asked for": (
        "q: z@0 | p: txn 1 by x a? | c: commit 1 txn 1 ? | o: committed 1 | final z@0 short",
        "q: z@0 | p: txn 1 a? | c: commit 1 txn 1 ? | o: committed 1 | final z@0 short",
    ),
    "unstable-read": (
        "p: (txn 1 a | q: b@1 | c: from 1 | c: got b@1 | p: txn 1 a@0 commit) | final a@0 b@1",
        "p: (txn 1 a commit | q: b@1 | c: from 1 | c: got b@1 | p: txn 1 a@0) | final a@0 b@1",
    ),
    "unstable-read behind a transaction of unknown end": (
        "p: (txn 1 a | q: b@1 | c: from 1 | c: got b@1 | p: txn 1 a? commit) | final a@0 b@1",
        "p: (txn 1 a | q: b@0 | c: from 0 | c: got b@0 | p: txn 1 a? commit) | final b@0 a@1",
    ),
    "zombie-transaction": (
        "p: (txn 1 by x a | q: (txn 2 by x b | p: txn 1 a@0 commit) | q: txn 2 b@1 commit) | final a@0 b@1",
        "p: (txn 1 by x a commit | q: (txn 2 by x b | p: txn 1 a@0) | q: txn 2 b@1 commit) | final a@0 b@1",
    ),
    "zombie-transaction, seen in the final read": (
        "p: (txn 1 by x a | q: txn 2 by x b@1 commit | p: txn 1 a? commit) | final a@0 b@1",
        "p: (txn 1 by x a | q: txn 2 by y b@1 commit | p: txn 1 a? commit) | final a@0 b@1",
    ),
    "zombie-transaction, seen by its group": (
        "q: z@0 | p: (txn 1 by x a | c: (commit 1 txn 1 | q: txn 2 by x b@2 commit | p: txn 1 a? commit) "
        "| c: commit 1 txn 1 ?) | o: committed 1 | final z@0 b@2 short",
        "q: z@0 | p: (txn 1 by x a | c: (commit 1 txn 1 | q: txn 2 by y b@2 commit | p: txn 1 a? commit) "
        "| c: commit 1 txn 1 ?) | o: committed 1 | final z@0 b@2 short",
    ),
    "zombie-transaction whose commit came late": (
        "q: z@0 | p: txn 1 by x a? commit | c: commit 1 txn 1 ? | q: (txn 2 by x b | o: committed none "
        "stable "
        "| o: committed 1 | q: txn 2 b@1 commit) | final z@0 b@1 short",
        "q: z@0 | p: txn 1 by x a? commit | c: commit 1 txn 1 ? | o: committed none stable | q: (txn 2 by "
        "x b "
        "| o: committed 1 | q: txn 2 b@1 commit) | final z@0 b@1 short",
    ),
    "aborted-read of a transaction": (
        "p: txn 1 a! abort | final a@0",
        "p: txn 1 a? commit | final a@0",
    ),
    "aborted-read where the abort failed": (
        "p: txn 1 a? abort | final a@0",
        "p: txn 1 a? abort | final",
    ),
    "aborted-read where the abort failed, seen by a consumer": (
        "p: txn 1 a? b@1/? abort | c: from 0 | c: got a@0",
        "p: txn 1 a? b@1/? commit | c: from 0 | c: got a@0",
    ),
    "torn-transaction": (
        "p: txn 1 a? b@1/? commit | final a@0 | final 1/",
        "p: txn 1 a? b@1/? commit | final a@0 | final 1/ to 1 short",
    ),
    "torn-transaction that never completed": (
        "p: (txn 1 a b@1/? | final a@0 | final 1/",
        "p: (a b@1/? | final a@0 | final 1/",
    ),
    "torn-transaction, and one of which there is nothing": (
        "p: txn 1 a? b@1/? commit | q: txn 2 c? d@1/? commit | final a@0 | final 1/",
        "p: txn 1 a? b@1/? commit | q: txn 2 c? d@1/? commit | final a@0 | final b@1/0",
    ),
    "torn-transaction whose offsets are all that is left": (
        "q: z@0 | p: txn 1 a? commit | c: commit 1 txn 1 ? | o: committed 1 | final z@0",
        "q: z@0 | p: txn 1 a? commit | c: commit 1 txn 1 ? | d: gen 1 from 0 | d: got z@0 | d: commit 1 "
        "| o: committed 1 | final z@0",
    ),
    "torn-transaction whose offsets were told before it completed": (
        "q: z@0 | p: (txn 1 a commit | c: (commit 1 txn 1 | o: committed 1 | p: txn 1 a?) | c: commit 1 "
        "txn 1 ?) "
        "| final z@0",
        "q: z@0 | p: (txn 1 a commit | c: (commit 1 txn 1 | o: committed 1 | p: txn 1 a?) | c: commit 1 "
        "txn 1 ?) "
        "| final z@0 a@1",
    ),
    "torn-transaction whose records are all that is left": (
        "q: z@0 | p: txn 1 a? commit | c: commit 1 txn 1 ? | o: committed none stable | final z@0 a@1",
        "q: z@0 | p: (txn 1 a | c: (commit 1 txn 1 | o: (committed | p: txn 1 a? commit) | c: commit 1 txn "
        "1 ?) "
        "| o: committed none stable) | final z@0 a@1",
    ),
    "commit-regression": (
        "p: a@0 b@1 | c: gen 1 from 0 | c: got a@0 b@1 | c: commit 2 | c: commit 1",
        "p: a@0 b@1 | c: gen 1 from 0 | c: got a@0 b@1 | c: commit 2 | c: from 0 | c: commit 1",
    ),
    "commit-regression where nobody told where it began": (
        "p: a@0 b@1 | c: gen 1 from 0 | c: got a@0 b@1 | c: commit 2 | d: gen 2 from ? | d: commit 1",
        "p: a@0 b@1 | c: gen 1 from 0 | c: got a@0 b@1 | d: gen 1 | d: commit 1 ? | c: commit 2 "
        "| e: gen 2 from ? | e: commit 1",
    ),
    "commit-regression seen by a reader": (
        "p: a@0 b@1 | c: gen 1 from 0 | c: got a@0 b@1 | c: commit 1 | c: commit 2 | o: committed 1",
        "p: a@0 b@1 | c: gen 1 from 0 | c: got a@0 b@1 | d: gen 1 | d: commit 1 ? | c: commit 2 "
        "| o: committed 1",
    ),
    "commit-regression seen by a reader, to what a fenced member had asked for": (
        "p: a@0 b@1 | c: gen 1 from 0 | c: got a@0 b@1 | c: commit 1 ? | d: gen 2 from 0 | d: got a@0 b@1 "
        "| d: commit 2 | o: committed 1",
        "p: a@0 b@1 | c: gen 1 from 0 | c: got a@0 b@1 | z: commit 1 ? | d: gen 2 from 0 | d: got a@0 b@1 "
        "| d: commit 2 | o: committed 1",
    ),
    "commit-regression to what a later commit had replaced": (
        "p: a@0 b@1 | c: gen 1 from 0 | c: got a@0 b@1 | c: commit 2 | c: from 0 | c: commit 1 "
        "| o: committed 2",
        "p: a@0 b@1 | c: gen 1 from 0 | c: got a@0 b@1 | c: (commit 2 | d: from 0 | d: commit 1 gen 1 "
        "| c: commit 2) | o: committed 2",
    ),
    "commit-regression to nothing": (
        "p: a@0 | c: gen 1 from 0 | c: got a@0 | c: commit 1 | o: committed none",
        "p: a@0 | c: gen 1 from 0 | c: got a@0 | o: (committed | c: commit 1 | o: committed none)",
    ),
    "commit-regression of one group": (
        "p: a@0 | c: gen 1 from 0 in h | c: got a@0 | c: commit 1 in h | o: committed none in h",
        "p: a@0 | c: gen 1 from 0 in h | c: got a@0 | c: commit 1 in h | o: committed none",
    ),
    "commit-beyond-end": (
        "p: a@0 | c: gen 1 from 0 | c: got a@0 | c: commit 2 | final a@0",
        "p: a@0 | c: gen 1 from 0 | c: got a@0 | c: commit 2 | final a@0 to 2 short",
    ),
    "group-skip": (
        "p: a@0 b@1 | c: gen 1 from 0 | c: got a@0 | d: gen 2 from 2 | d: commit 2 | final a@0 b@1",
        "p: a@0 b@1 | c: gen 1 from 0 | c: got a@0 | z: gen 2 from 1 | z: got b@1 | d: gen 3 from 2 | d: "
        "commit 2 "
        "| final a@0 b@1",
    ),
    "group-skip by what a transaction's consumer was given": (
        "p: a@0 b@1 | c: from 0 in g | c: got a@0 | c: from 2 in g | e: commit 2 txn 1 | final a@0 b@1",
        "p: a@0 b@1 | c: from 0 in g | c: got a@0 b@1 | e: commit 2 txn 1 | final a@0 b@1",
    ),
    "unprocessed-input": (
        "p: a@0 b@1 | c: from 0 in g | c: got a@0 undone | c: got b@1 | e: commit 2 txn 2 | final a@0 b@1",
        "p: a@0 b@1 | c: from 0 in g | c: got a@0 undone | c: from 0 in g | c: got a@0 b@1 "
        "| e: commit 2 txn 2 | final a@0 b@1",
    ),
    "unprocessed-input of what was committed past": (
        "p: a@0 b@1 | c: from 0 in g | c: got a@0 undone | c: got b@1 | e: commit 2 txn 2 | final a@0 b@1",
        "p: a@0 b@1 | c: from 0 in g | c: got a@0 b@1 undone | e: commit 2 txn 2 ? | final a@0 b@1",
    ),
    "forgotten-commit": (
        "p: a@0 b@1 | c: gen 1 from 0 | c: got a@0 b@1 | c: commit 2 | d: gen 2 from 1",
        "p: a@0 b@1 | c: gen 1 from 0 | c: got a@0 b@1 | c: commit 2 ? | d: gen 2 from 1",
    ),
    "forgotten-commit, of the generation before": (
        "p: a@0 b@1 | c: gen 1 from 0 | c: got a@0 b@1 | c: commit 2 | d: gen 2 from 0",
        "p: a@0 b@1 | c: gen 2 from 0 | c: got a@0 b@1 | c: commit 2 | d: gen 2 from 0 1/0 in h",
    ),
    "forgotten-commit, though one of unknown outcome came late": (
        "p: a@0 b@1 | c: gen 1 from 0 | c: got a@0 b@1 | c: commit 2 | d: gen 2 from 1",
        "p: a@0 b@1 | c: gen 1 from 0 | c: got a@0 b@1 | d: gen 1 | d: commit 1 ? | c: commit 2 "
        "| e: gen 2 from 1",
    ),
    "forgotten-commit, though a fenced member had asked for less": (
        "p: a@0 b@1 | c: gen 1 from 0 | c: got a@0 | c: commit 1 ? | d: gen 2 from 0 | d: got a@0 b@1 | "
        "d: commit 2 | e: gen 3 from 1",
        "p: a@0 b@1 | c: gen 1 from 0 | c: got a@0 | z: commit 1 ? | d: gen 2 from 0 | d: got a@0 b@1 | "
        "d: commit 2 | e: gen 3 from 1",
    ),
    "uncommitted-start": (
        "p: a@0 b@1 | c: gen 1 from 0 | c: got a@0 | c: commit 1 | d: gen 2 from 2 | final a@0 b@1",
        "p: a@0 b@1 | c: gen 1 from 0 | c: got a@0 | c: commit 1 | c: (commit 2 | d: gen 2 from 2 "
        "| final a@0 b@1",
    ),
    "uncommitted-start, where something had been committed": (
        "p: a@0 b@1 | c: gen 1 from 0 | c: got a@0 | c: commit 1 | d: gen 2 from 2 | final a@0 b@1",
        "p: a@0 b@1 | c: gen 1 from 0 | c: got a@0 | c: commit 1 ! | d: gen 2 from 2 | final a@0 b@1",
    ),
    "uncommitted-start of a new owner": (
        "p: a@0 b@1 | c: gen 1 from 0 | c: got a@0 | c: commit 1 | d: gen 2 from 2 | final a@0 b@1",
        "p: a@0 b@1 | c: gen 1 from 0 | c: got a@0 | c: commit 1 | c: gen 2 from 2 | final a@0 b@1",
    ),
    "uncommitted-start in a log that begins before what was committed": (
        "p: a@0 b@1 c@2 | c: gen 1 from 0 | c: got a@0 b@1 | c: commit 1 | d: gen 2 from 2 "
        "| final b@1 c@2 from 1",
        "p: a@0 b@1 c@2 | c: gen 1 from 0 | c: got a@0 b@1 | c: commit 1 | d: gen 2 from 2 "
        "| final c@2 from 2",
    ),
    "uncommitted-start, at what a fenced member had asked for": (
        "p: a@0 b@1 | c: gen 1 from 0 | c: commit 2 ? | d: gen 2 from 0 | d: got a@0 | d: commit 1 "
        "| e: gen 3 from 2 | final a@0 b@1",
        "p: a@0 b@1 | c: gen 1 from 0 | z: commit 2 ? | d: gen 2 from 0 | d: got a@0 | d: commit 1 "
        "| e: gen 3 from 2 | final a@0 b@1",
    ),
    "position-skip": (
        "p: a@0 b@1 | c: gen 1 from 0 | c: got a@0 at 2 | final a@0 b@1",
        "p: a@0 b@1 | c: gen 1 from 0 | c: got a@0 at 1 | final a@0 b@1",
    ),
    "position-skip of all that there is": (
        "p: a@0 b@1 | c: gen 1 from 1 | c: got at 2 | final a@0 b@1",
        "p: a@0 b@1 | c: gen 1 from 2 | c: got at 2 | final a@0 b@1",
    ),
    "position-skip, and of what was given in the end": (
        "p: a@0 b@1 | c: gen 1 from 0 | c: got a@0 at 2 | d: gen 2 from 0 | d: got a@0 b@1 at 2 "
        "| final a@0 b@1",
        "p: a@0 b@1 | c: gen 1 from 0 | c: got a@0 at 2 | c: got b@1 at 2 | final a@0 b@1",
    ),
    "position-skip where nobody else deletes": (
        "p: a@0 of x | p: b@1 of y | c: gen 1 from 0 | c: got at 1 | final a@0 b@1",
        "p: a@0 of x | p: b@1 of x | c: gen 1 from 0 | c: got at 1 | final a@0 b@1",
    ),
    "phantom-commit": (
        "p: a@0 b@1 | c: gen 1 from 0 | c: got a@0 b@1 | c: commit 1 | o: committed 2",
        "p: a@0 b@1 | c: gen 1 from 0 | c: got a@0 b@1 | c: commit 1 | c: (commit 2 | o: committed 2",
    ),
    "phantom-commit, asked for later": (
        "p: a@0 | c: gen 1 from 0 | c: got a@0 | o: committed 1 | c: commit 1",
        "p: a@0 | c: gen 1 from 0 | c: got a@0 | o: (committed | c: (commit 1 | o: committed 1) "
        "| c: commit 1)",
    ),
    "phantom-commit of a transaction that was to abort": (
        "p: a@0 | c: gen 1 from 0 | c: got a@0 | d: commit 1 txn 1 ? abort | o: committed 1",
        "p: a@0 | c: gen 1 from 0 | c: got a@0 | d: commit 1 txn 1 ? | o: committed 1",
    ),
    "double-owner": (
        "c: gen 1 from 0 | d: gen 1 from 0",
        "c: gen 1 from 0 | d: gen 1 from 1/0",
    ),
    "double-owner, without a crash": (
        "c: gen 1 from 0 | d: gen 1 from 0",
        "c: gen 1 from 0 | c: crash | d: gen 1 from 0",
    ),
    "double-owner, whom nobody waited for": (
        "c: gen 1 from 0 cooperative | d: gen 2 from 0 cooperative | c: gen 2 cooperative",
        "c: gen 1 from 0 consumer | d: gen 2 from 0 consumer | c: gen 2 consumer",
    ),
    "double-owner, who took part in the next generation": (
        "c: gen 1 from 0 eager | d: gen 2 from 0 eager | c: gen 2 from 1/0 eager",
        "c: gen 1 from 0 eager | d: gen 2 from 0 eager | c: gen 3 from 1/0 eager",
    ),
    "double-owner, who had given it up": (
        "c: gen 1 from 0 1/0 eager | c: gen 1 from 0 eager | d: gen 2 from 0 eager | c: gen 2 from 1/0 eager",
        "c: gen 1 from 0 1/0 eager | c: gen 1 eager | d: gen 2 from 0 eager | c: gen 2 from 1/0 eager",
    ),
    "zombie-commit": (
        "p: a@0 | c: gen 1 from 0 | c: got a@0 | d: gen 2 from 0 | c: commit 1",
        "p: a@0 | c: gen 1 from 0 | c: got a@0 | c: (commit 1 | d: gen 2 from 1 | c: commit 1)",
    ),
    "zombie-commit that the next generation was not shown": (
        "p: a@0 | c: gen 1 from 0 | c: got a@0 | c: (commit 1 | d: gen 2 from 0 | c: commit 1)",
        "p: a@0 | c: gen 1 from 0 | c: got a@0 | c: (commit 1 | d: gen 2 from ? | c: commit 1)",
    ),
    "zombie-commit, and none that another one followed": (
        "p: a@0 | c: gen 1 from 0 | c: got a@0 | c: (commit 1 | d: gen 2 from 0 | c: commit 1)",
        "p: a@0 | c: gen 1 from 0 | c: got a@0 | c: (commit 1 | z: (commit 0 | d: gen 2 from 0 "
        "| c: commit 1)",
    ),
    "zombie-commit where members have epochs of their own": (
        "p: a@0 | c: gen 1 from 0 consumer | c: got a@0 | d: gen 2 from 0 consumer | c: commit 1",
        "p: a@0 | c: gen 1 from 0 consumer | c: got a@0 | d: gen 2 from 1/0 consumer | c: commit 1",
    ),
    "zombie-commit of unknown outcome": (
        "p: a@0 | c: gen 1 from 0 | c: got a@0 | c: commit 1 ? | d: gen 2 from 0 | o: committed 1",
        "p: a@0 | c: gen 1 from 0 | c: got a@0 | c: commit 1 ? | d: gen 2 from ? | o: committed 1",
    ),
    "zombie-commit of unknown outcome, once another one had succeeded": (
        "p: a@0 b@1 | c: gen 1 from 0 | c: got a@0 b@1 | c: commit 2 ? | d: gen 2 from ? | d: got a@0 "
        "| d: commit 1 | o: committed 2",
        "p: a@0 b@1 | c: gen 1 from 0 | c: got a@0 b@1 | c: commit 2 ? | d: gen 2 from ? | d: got a@0 "
        "| d: (commit 1 | o: committed 2",
    ),
}
"""anomaly, where it has several forms with which: (bad, good)."""


def anomaly_of(name: str) -> str:
    return name.split()[0].rstrip(",")
