"""The test itself: specification, runner, history, report and command line."""
