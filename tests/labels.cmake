# Tests that take longer than a moment, as <program>/<Suite> or <program>/<Suite>.<Test>; everything else is fast.
set(thorough)
set(slow)
set(soak)
