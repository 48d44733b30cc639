//! A histogram in JSON: all its values, encoded, and statistics for readers that cannot decode
//! them. Percentiles are the highest value of a bucket, the maximum is the lowest.

use super::{Histogram, encoded};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
struct StoredHistogram {
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

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let stored = StoredHistogram {
            count: self.count(),
            min_ns: self.min_ns(),
            mean_ns: self.mean_ns().round() as u64,
            stdev_ns: self.stdev_ns().round() as u64,
            p50_ns: self.percentile_ns(50.0),
            p75_ns: self.percentile_ns(75.0),
            p90_ns: self.percentile_ns(90.0),
            p99_ns: self.percentile_ns(99.0),
            p99_9_ns: self.percentile_ns(99.9),
            p99_99_ns: self.percentile_ns(99.99),
            max_ns: self.max_ns(),
            histogram: encoded::encode(self),
        };
        stored.serialize(to)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Histogram, D::Error> {
        let stored = StoredHistogram::deserialize(from)?;
        encoded::decode(&stored.histogram).map_err(Error::custom)
    }
}
