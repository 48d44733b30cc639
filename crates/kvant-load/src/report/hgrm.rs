//! Percentile distributions as text, as HdrHistogram plotters read them.
