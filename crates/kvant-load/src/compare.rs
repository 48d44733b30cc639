//! Two outcomes side by side.
