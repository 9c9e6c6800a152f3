"""The reason why a finding is a contradiction, as data: made from the rows that it cites
(docs/report-internals.md)."""
