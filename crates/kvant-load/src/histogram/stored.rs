//! A histogram in JSON: all its values, encoded, and statistics for readers that cannot decode
//! them. Percentiles are the highest value of a bucket, the maximum is the lowest.

use super::{Histogram, encoded};
use kvant_base::Error;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
pub(super) struct StoredHistogram {
    count: u64,
    min_ns: u64,
    mean_ns: u64,
    stdev_ns: u64,
    p50_ns: u64,
    p75_ns: u64,
    p90_ns: u64,
    p99_ns: u64,
    p99_9_ns: u64,
    p99_99_ns: u64,
    max_ns: u64,
    histogram: String,
}

impl From<Histogram> for StoredHistogram {
    fn from(histogram: Histogram) -> StoredHistogram {
        StoredHistogram {
            count: histogram.count(),
            min_ns: histogram.min_ns(),
            mean_ns: histogram.mean_ns().round() as u64,
            stdev_ns: histogram.stdev_ns().round() as u64,
            p50_ns: histogram.percentile_ns(50.0),
            p75_ns: histogram.percentile_ns(75.0),
            p90_ns: histogram.percentile_ns(90.0),
            p99_ns: histogram.percentile_ns(99.0),
            p99_9_ns: histogram.percentile_ns(99.9),
            p99_99_ns: histogram.percentile_ns(99.99),
            max_ns: histogram.max_ns(),
            histogram: encoded::encode(&histogram),
        }
    }
}

impl TryFrom<StoredHistogram> for Histogram {
    type Error = Error;

    fn try_from(stored: StoredHistogram) -> Result<Histogram, Error> {
        encoded::decode(&stored.histogram)
    }
}
