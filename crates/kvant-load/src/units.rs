//! wrk's units: 10k requests, 30s, and how wrk prints numbers.
