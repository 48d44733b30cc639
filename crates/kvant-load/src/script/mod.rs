//! Lua scripts, as wrk and wrk2 run them.
