//! Random operations with random settings and restarts, against a `BTreeMap`.
//!
//! The model keeps every record with its expiry; the mock clock advances at random. Snapshots stay
//! open during flushes, compactions and later writes, and must return the same records throughout.

use crate::common::{DIR, World, random_options, rounds, seed};
use bytes::Bytes;
use kvant_base::ErrorKind;
use kvant_engine::{Db, Lookup, RangeIter, ReadTrace, Snapshot, Value, WriteBatch};
use kvant_env::rng::Rng;
use kvant_env::testing::FaultyFs;
use kvant_env::{Clock, Fs};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

type Map = BTreeMap<Vec<u8>, (Vec<u8>, Option<u64>)>;
/// A range that is read in parts, and the records that it should still return.
type OpenRange =
    (RangeIter, std::collections::btree_map::IntoIter<Vec<u8>, (Vec<u8>, Option<u64>)>);

struct Run {
    rng: Rng,
    world: World,
    model: Map,
    key_space: u64,
    value_bytes_max: u64,
    checkpoints: u64,
}

#[test]
fn random_operations_agree_with_a_sorted_map() {
    let seed = seed("model");
    for round in 0..rounds(12) {
        let mut rng = Rng::new(seed.wrapping_add(round));
        let fs: Arc<dyn Fs> = Arc::new(FaultyFs::in_memory());
        let world = World::new(rng.next_u64(), fs);
        let key_space = [8, 100, 2_000, 1 << 40][rng.below(4) as usize];
        let value_bytes_max = [0, 20, 400, 9_000][rng.below(4) as usize];
        let run = Run { rng, world, model: Map::new(), key_space, value_bytes_max, checkpoints: 0 };
        println!(
            "round {round}: seed {}, {key_space} keys, values to {value_bytes_max}",
            seed.wrapping_add(round)
        );
        run.sessions();
    }
}

impl Run {
    fn sessions(mut self) {
        for _ in 0..1 + self.rng.below(4) {
            let options = random_options(&mut self.rng);
            println!("  {options:?}");
            let db = self.world.open(&options);
            self.compare_all(&db);
            self.operations(&db);
            self.compare_all(&db);
            if self.rng.one_in(3) {
                db.close().expect("the database closes");
                let refused = db.get(b"key").expect_err("a closed database rejects reads");
                assert_eq!(refused.kind(), ErrorKind::Closed);
            }
        }
    }

    fn operations(&mut self, db: &Db) {
        let mut snapshots: Vec<(Snapshot, Map)> = Vec::new();
        let mut ranges: Vec<OpenRange> = Vec::new();
        for _ in 0..200 + self.rng.below(1_500) {
            match self.rng.below(100) {
                0..55 => self.write(db),
                55..80 => self.read(db),
                80..84 => self.compare_range(db),
                84..87 if snapshots.len() < 4 => {
                    snapshots.push((db.snapshot(), self.model.clone()))
                }
                87..90 if !snapshots.is_empty() => {
                    let index = self.rng.below(snapshots.len() as u64) as usize;
                    let (snapshot, frozen) = &snapshots[index];
                    self.compare_snapshot(snapshot, frozen);
                    if self.rng.one_in(2) {
                        snapshots.swap_remove(index);
                    }
                }
                90 if ranges.len() < 3 => {
                    let mut expected = self.model.clone();
                    let now_ms = self.now_ms();
                    expected.retain(|_, (_, expiry_ms)| {
                        expiry_ms.is_none_or(|expiry_ms| expiry_ms > now_ms)
                    });
                    ranges
                        .push((db.range(b"", None).expect("a range opens"), expected.into_iter()));
                }
                91..93 => {
                    for range in &mut ranges {
                        let count = self.rng.below(50);
                        self.read_on(range, count);
                    }
                }
                93 => db.flush().expect("a flush succeeds"),
                94 if self.rng.one_in(4) => db.compact().expect("a compaction succeeds"),
                95 => {
                    let ms = self.rng.below(40_000);
                    self.world.clock.advance(Duration::from_millis(ms));
                }
                96 if self.rng.one_in(8) => self.compare_checkpoint(db),
                _ => {
                    for _ in 0..self.rng.below(6) {
                        self.world.spawner.step();
                    }
                }
            }
        }
        for (snapshot, frozen) in &snapshots {
            self.compare_snapshot(snapshot, frozen);
        }
        for range in &mut ranges {
            self.read_on(range, u64::MAX);
        }
    }

    fn now_ms(&self) -> u64 {
        self.world.clock.wall_ms()
    }

    fn key(&mut self) -> Vec<u8> {
        let number = self.rng.below(self.key_space);
        // Some keys are prefixes of others, some are long, some contain zero bytes.
        match number % 7 {
            0 => vec![b'a'; 1 + (number % 300) as usize],
            1 => [b"k\0".as_slice(), &number.to_be_bytes()].concat(),
            _ => format!("key{number}").into_bytes(),
        }
    }

    fn write(&mut self, db: &Db) {
        let mut batch = WriteBatch::new();
        for _ in 0..1 + if self.rng.one_in(4) { self.rng.below(20) } else { 0 } {
            let key = self.key();
            if self.rng.one_in(4) {
                batch.delete(&key);
                self.model.remove(&key);
                continue;
            }
            let length = self.rng.below(self.value_bytes_max + 1) as usize;
            let value =
                if self.rng.one_in(2) { vec![b'v'; length] } else { self.rng.bytes(length) };
            let expiry_ms = self.rng.one_in(5).then(|| self.now_ms() + 1 + self.rng.below(60_000));
            batch.put(&key, &value, expiry_ms);
            self.model.insert(key, (value, expiry_ms));
        }
        db.write(batch).expect("a write succeeds");
    }

    fn read(&mut self, db: &Db) {
        let key = self.key();
        let expected = value_at(&self.model, &key, self.now_ms());
        if self.rng.one_in(2) {
            let found = db.try_get(&key, &mut ReadTrace::default());
            let expected = Lookup::Known(expected.clone());
            assert_eq!(found.expect("a read succeeds"), expected, "key {key:?}");
            let mut buffer = b"before".to_vec();
            let found = db.try_get_into(&key, &mut buffer, 100, &mut ReadTrace::default());
            let found = match found.expect("a read succeeds") {
                Lookup::Known(Some(Value::Appended)) => Some(Bytes::from(buffer).slice(6..)),
                Lookup::Known(Some(Value::Bytes(value))) => Some(value),
                Lookup::Known(None) => None,
                Lookup::NeedsDisk { .. } => panic!("the disk is memory"),
            };
            assert_eq!(Lookup::Known(found), expected, "key {key:?}");
        }
        assert_eq!(db.get(&key).expect("a read succeeds"), expected, "key {key:?}");
    }

    fn compare_range(&mut self, db: &Db) {
        let (start, end) = (self.key(), self.key());
        let mut range = db.range(&start, Some(&end)).expect("a range opens");
        let expected = live(&self.model, self.now_ms());
        let expected = expected.into_iter().filter(|(key, _)| *key >= start && *key < end);
        for (key, value) in expected {
            let record = range.next().expect("a range reads").expect("the range continues");
            assert_eq!((record.key, record.value), (key.as_slice(), value.as_slice()));
        }
        assert_eq!(range.next().expect("a range reads"), None);
    }

    fn compare_all(&mut self, db: &Db) {
        let found = crate::common::all_records(db).expect("a range reads");
        assert!(found == live(&self.model, self.now_ms()), "the database differs from the model");
    }

    fn compare_snapshot(&mut self, snapshot: &Snapshot, frozen: &Map) {
        for _ in 0..5 {
            let key = self.key();
            let expected = value_at(frozen, &key, self.now_ms());
            assert_eq!(snapshot.get(&key).expect("a read succeeds"), expected, "key {key:?}");
        }
        let mut range = snapshot.range(b"", None).expect("a range opens");
        for (key, value) in live(frozen, self.now_ms()) {
            let record = range.next().expect("a range reads").expect("the range continues");
            assert_eq!((record.key, record.value), (key.as_slice(), value.as_slice()));
        }
        assert_eq!(range.next().expect("a range reads"), None);
    }

    /// Reads up to `count` records from a range that was opened earlier. Records that have expired
    /// since may be missing.
    fn read_on(&self, (range, expected): &mut OpenRange, count: u64) {
        let now_ms = self.now_ms();
        let expired =
            |expiry_ms: Option<u64>| expiry_ms.is_some_and(|expiry_ms| expiry_ms <= now_ms);
        for _ in 0..count {
            let Some(record) = range.next().expect("a range reads") else {
                assert!(
                    expected.all(|(_, (_, expiry_ms))| expired(expiry_ms)),
                    "the range ended early"
                );
                return;
            };
            let (key, (value, _)) = expected
                .find(|(key, (_, expiry_ms))| key == record.key || !expired(*expiry_ms))
                .expect("the range returns no other records");
            assert_eq!((record.key, record.value), (key.as_slice(), value.as_slice()));
        }
    }

    fn compare_checkpoint(&mut self, db: &Db) {
        self.checkpoints += 1;
        let name = format!("/checkpoint{}", self.checkpoints);
        let dir = Path::new(&name);
        db.checkpoint(dir).expect("a checkpoint is made");
        let again = db.checkpoint(dir).expect_err("a checkpoint never replaces a directory");
        assert_eq!(again.kind(), ErrorKind::Invalid);
        let options = random_options(&mut self.rng);
        let resources = kvant_engine::Resources::new(&options);
        let copy = Db::open(self.world.env.clone(), dir, options, resources)
            .expect("the checkpoint opens");
        self.compare_all(&copy);
        copy.put(b"only in the copy", b"", None).expect("the copy is writable");
        assert_eq!(db.get(b"only in the copy").expect("a read succeeds"), None);
        assert_ne!(name, DIR);
    }
}

fn value_at(model: &Map, key: &[u8], now_ms: u64) -> Option<Bytes> {
    let (value, expiry_ms) = model.get(key)?;
    expiry_ms.is_none_or(|expiry_ms| expiry_ms > now_ms).then(|| Bytes::copy_from_slice(value))
}

fn live(model: &Map, now_ms: u64) -> Vec<(Vec<u8>, Vec<u8>)> {
    let alive = model
        .iter()
        .filter(|(_, (_, expiry_ms))| expiry_ms.is_none_or(|expiry_ms| expiry_ms > now_ms));
    alive.map(|(key, (value, _))| (key.clone(), value.clone())).collect()
}
