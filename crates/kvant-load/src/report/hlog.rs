//! HdrHistogram interval logs, one line a second, kind of request and kind of latency.
