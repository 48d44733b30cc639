//! Workloads without a script: keys, values and a mix of operations from one seed.
