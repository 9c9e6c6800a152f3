"""What every test shares: Hypothesis draws the same examples in every run, so a pass is a pass for everybody.

`HYPOTHESIS_PROFILE=search` draws new ones instead, five times as many; what it finds becomes an example of its own.
"""

import os

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("search", max_examples=500, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))
