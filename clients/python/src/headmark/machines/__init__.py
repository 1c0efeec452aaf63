"""The poller and the inbox reader as pure functions: `step(state, event, now)` is the next state
and what to do. They read no clock, draw no number and do no I/O. `clients/README.md` specifies
each rule, and the names are those of the vectors."""
