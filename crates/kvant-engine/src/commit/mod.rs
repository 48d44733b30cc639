//! The commit pipeline: batches become durable and visible in one order.
//!
//! A batch passes the [`gate`], then joins the queue. Whoever finds no leader leads: it takes
//! everything that is queued as one group, writes it to the log with one write, inserts it into the
//! memtable and completes it, until the queue is empty. With `--sync always` a group is handed to
//! [`sync`], which makes all groups written so far durable with one fsync, and only then makes them
//! visible and completes them.
//!
//! One thread inserts for all (flat combining: Hendler, Incze, Shavit, Tzafrir, SPAA 2010); why not
//! every writer for itself is in `docs/decisions/0001-one-thread-inserts-a-group.md`.
//!
//! Invariants:
//! 1. sequence numbers are consecutive and in the order of the log;
//! 2. a batch is visible only when it has reached its sync level, and completed only when it is
//!    visible;
//! 3. a memtable is sealed only between groups, so a log file holds exactly the groups of its
//!    memtable;
//! 4. after a failed fsync nothing is written any more.
//!
//! Threads: any; the leader holds `writer`. Lock order: see `db::core`.

pub(crate) mod gate;
pub(crate) mod queue;
pub(crate) mod sync;
