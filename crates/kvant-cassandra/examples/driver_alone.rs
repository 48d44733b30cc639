//! The driver alone, in a loop: what Kvant's server with the engine `cassandra` is measured
//! against (`cargo xtask bench cluster`).
//!
//! Keys, statements, consistency and the number of requests in flight are those of the server under
//! `kvant load`, and so are the pages of a range of N records: of each bucket, for 16 of them in
//! one request, as many rows as such a range needs nearly always, and another page of a bucket that
//! had too few. The rows are sorted.
//!
//! Arguments: NODE KEYSPACE OPERATION IN-FLIGHT COUNT KEYS, the operation one of `put`, `get` and
//! `range`. Prints one JSON object: requests, nanoseconds, and CPU time in microseconds.
#![allow(clippy::print_stdout, reason = "the result is printed")]

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::statement::Consistency;
use scylla::statement::prepared::PreparedStatement;
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};
use twox_hash::XxHash3_64;

const RANGE_RECORDS: usize = 100;
const VALUE_BYTES: usize = 100;
/// Ranges of Kvant ask for the first pages of as many buckets at once.
const BUCKETS_AT_ONCE: usize = 16;
/// Ranges of Kvant send as many requests at a time.
const REQUESTS_AT_ONCE: usize = 16;

struct Bench {
    session: Session,
    statement: PreparedStatement,
    /// The next page of a bucket.
    one_page: PreparedStatement,
    operation: String,
    bucket_count: u64,
    /// All buckets.
    groups: Vec<Vec<i32>>,
    key_count: u64,
}

type Page = Vec<(Bytes, Bytes)>;
type BucketPage = (i32, Page);
type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [node, keyspace, operation, in_flight, count, key_count] = &args[..] else {
        return Err("arguments: NODE KEYSPACE put|get|range IN-FLIGHT COUNT KEYS".into());
    };
    let (in_flight, count): (usize, u64) = (in_flight.parse()?, count.parse()?);
    let bench = Bench::open(node, keyspace, operation, key_count.parse()?).await?;
    let bench = Arc::new(bench);
    // Connections and caches, of the node too, are warm.
    run(&bench, in_flight, count / 10, 1).await?;
    let (begin, begin_cpu_us) = (Instant::now(), cpu_us()?);
    run(&bench, in_flight, count, 2).await?;
    let ns = begin.elapsed().as_nanos();
    println!("{{\"requests\": {count}, \"ns\": {ns}, \"cpu_us\": {}}}", cpu_us()? - begin_cpu_us);
    Ok(())
}

/// Runs `count` requests, `in_flight` at a time.
async fn run(bench: &Arc<Bench>, in_flight: usize, count: u64, seed: u64) -> Outcome<()> {
    let next = Arc::new(AtomicU64::new(0));
    let loops = (0..in_flight).map(|_| {
        let (bench, next) = (Arc::clone(bench), Arc::clone(&next));
        tokio::spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return Outcome::Ok(());
                }
                let hash = XxHash3_64::oneshot_with_seed(seed, &number.to_le_bytes());
                bench.request(hash).await?;
            }
        })
    });
    for one in loops.collect::<Vec<_>>() {
        one.await??;
    }
    Ok(())
}

impl Bench {
    async fn open(node: &str, keyspace: &str, operation: &str, key_count: u64) -> Outcome<Bench> {
        let profile = ExecutionProfile::builder().request_timeout(Some(Duration::from_secs(5)));
        let session = SessionBuilder::new()
            .known_node(node)
            .default_execution_profile_handle(profile.build().into_handle())
            .compression(None)
            .build()
            .await?;
        let select = format!("SELECT value FROM {keyspace}.kvant WHERE name = 'bucket_count'");
        let rows = session.query_unpaged(select, ()).await?.into_rows_result()?;
        let (bucket_count,) = rows.single_row::<(i32,)>()?;
        let entity = format!("{keyspace}.entity");
        let prepare = async |text: String| -> Outcome<PreparedStatement> {
            let mut statement = session.prepare(text).await?;
            statement.set_is_idempotent(true);
            statement.set_use_cached_result_metadata(true);
            statement.set_consistency(Consistency::Quorum);
            Ok(statement)
        };
        let statement = prepare(match operation {
            "put" => format!(
                "INSERT INTO {entity} (bucket, key, value) VALUES (?, ?, ?) USING TIMESTAMP ? AND \
                 TTL ?"
            ),
            "get" => format!("SELECT value FROM {entity} WHERE bucket = ? AND key = ?"),
            "range" => format!(
                "SELECT bucket, key, value FROM {entity} WHERE bucket IN ? AND key >= ? PER \
                 PARTITION LIMIT ?"
            ),
            other => return Err(format!("no operation `{other}`").into()),
        })
        .await?;
        let one_page =
            format!("SELECT key, value FROM {entity} WHERE bucket = ? AND key >= ? LIMIT ?");
        Ok(Bench {
            statement,
            one_page: prepare(one_page).await?,
            session,
            operation: operation.to_string(),
            groups: (0..bucket_count)
                .collect::<Vec<_>>()
                .chunks(BUCKETS_AT_ONCE)
                .map(Vec::from)
                .collect(),
            bucket_count: u64::try_from(bucket_count)?,
            key_count,
        })
    }

    async fn request(&self, hash: u64) -> Outcome<()> {
        let key = format!("{:012}", hash % self.key_count).into_bytes();
        match self.operation.as_str() {
            "put" => {
                let bucket = i32::try_from(XxHash3_64::oneshot(&key) % self.bucket_count)?;
                let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
                let stamp_us = i64::try_from(now.as_micros())?;
                let value = vec![b'v'; VALUE_BYTES];
                let values = (bucket, key, value, stamp_us, 0_i32);
                self.session.execute_unpaged(&self.statement, values).await?;
            }
            "get" => {
                let bucket = i32::try_from(XxHash3_64::oneshot(&key) % self.bucket_count)?;
                let result = self.session.execute_unpaged(&self.statement, (bucket, key)).await?;
                let rows = result.into_rows_result()?;
                rows.maybe_first_row::<(Bytes,)>()?.ok_or("a key is missing")?;
            }
            _ => self.range(key.into()).await?,
        }
        Ok(())
    }

    async fn range(&self, start: Bytes) -> Outcome<()> {
        let mut limit = self.page_rows(RANGE_RECORDS);
        let groups = self.groups.iter().map(|group| self.pages(group, start.clone(), limit));
        let groups: Vec<_> = groups.collect();
        let groups = stream::iter(groups).buffer_unordered(REQUESTS_AT_ONCE);
        let mut pages: Vec<_> = groups.try_concat().await?;
        let (mut records, mut open) = (Vec::new(), BTreeMap::new());
        loop {
            for (bucket, page) in pages {
                // Without a last key the bucket has no more.
                let last = page.last().filter(|_| page.len() == limit);
                open.insert(bucket, last.map(|(key, _)| key.clone()));
                records.extend(page);
            }
            records.sort_unstable();
            // Records behind the end of a page may have others before them.
            let ends = open.iter().filter_map(|(bucket, end)| Some((end.as_ref()?, *bucket)));
            let Some((end, bucket)) = ends.min() else { break };
            let complete_count = records.partition_point(|(key, _)| key <= end);
            if complete_count >= RANGE_RECORDS {
                break;
            }
            let from = [&end[..], b"\0"].concat().into();
            limit = self.page_rows(RANGE_RECORDS - complete_count);
            pages = vec![(bucket, self.page(bucket, from, limit).await?)];
        }
        records.truncate(RANGE_RECORDS);
        Ok(())
    }

    /// The first page of each bucket that has one.
    async fn pages(&self, buckets: &[i32], from: Bytes, limit: usize) -> Outcome<Vec<BucketPage>> {
        let values = (buckets, from, i32::try_from(limit)?);
        let result = self.session.execute_unpaged(&self.statement, values).await?;
        let rows = result.into_rows_result()?;
        let mut pages: Vec<BucketPage> = Vec::with_capacity(buckets.len());
        for row in rows.rows::<(i32, Bytes, Bytes)>()? {
            let (bucket, key, value) = row?;
            match pages.last_mut().filter(|(last, _)| *last == bucket) {
                Some((_, page)) => page.push((key, value)),
                None => pages.push((bucket, vec![(key, value)])),
            }
        }
        Ok(pages)
    }

    async fn page(&self, bucket: i32, from: Bytes, limit: usize) -> Outcome<Page> {
        let values = (bucket, from, i32::try_from(limit)?);
        let result = self.session.execute_unpaged(&self.one_page, values).await?;
        let rows = result.into_rows_result()?;
        let rows: Result<_, _> = rows.rows::<(Bytes, Bytes)>()?.collect();
        Ok(rows?)
    }

    /// As ranges of Kvant: the mean, two and a half standard deviations, and one.
    fn page_rows(&self, count: usize) -> usize {
        let mean = count as f64 / self.bucket_count as f64;
        let deviation = (mean * (1.0 - 1.0 / self.bucket_count as f64)).sqrt();
        count.min((mean + 2.5 * deviation).ceil() as usize + 1)
    }
}

/// CPU time of this process.
fn cpu_us() -> Outcome<u64> {
    let ticks_a_second = 100;
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = stat.rsplit_once(')').ok_or("no fields")?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let ticks = fields[11].parse::<u64>()? + fields[12].parse::<u64>()?;
    Ok(ticks * 1_000_000 / ticks_a_second)
}
