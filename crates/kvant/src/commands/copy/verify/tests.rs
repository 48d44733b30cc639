use super::{EXPIRY_TOLERANCE_MS, compare, digests_of};
use crate::commands::copy::digest::Ranges;
use crate::commands::copy::records::tests::{Map, random_key};
use crate::commands::copy::records::{FIRST_KEY, Record, Records, Source};
use kvant_base::Result;
use kvant_env::Env;
use kvant_env::rng::Rng;
use kvant_env::testing::entropy_seed;

#[test]
fn places_are_equal_exactly_if_their_records_are() {
    let seed = entropy_seed();
    println!("seed {seed}");
    let mut rng = Rng::new(seed);
    let clock = Env::posix().clock;
    for _ in 0..300 {
        let mut maps = [Map::new(), Map::new()];
        for _ in 0..rng.below(2_000) {
            let (key, value) = (random_key(&mut rng), rng.bytes(2));
            maps.iter_mut().for_each(|map| {
                map.insert(key.clone(), value.clone());
            });
        }
        let [from, mut to] = maps;
        let expected = digests_of(&from, &clock).expect("maps can be read");
        compare(&from, &to, &expected, &clock).expect("they are equal");

        let key = random_key(&mut rng);
        let words = match (to.remove(&key), rng.below(2)) {
            (Some(_), 0) => "1 are missing",
            (Some(value), _) => {
                to.insert(key, [&value[..], b"more"].concat());
                "1 have another value"
            }
            (None, _) => {
                to.insert(key, Vec::new());
                "it has 1 more"
            }
        };
        let error = compare(&from, &to, &expected, &clock).expect_err(words);
        assert!(error.message().contains(words), "{error}");
    }
}

/// Records of which one expires.
struct Expiring(Map, Vec<u8>, u64);

struct ExpiringRecords<'a>(Box<dyn Records + 'a>, &'a Expiring);

impl Source for Expiring {
    fn read(&self, start: &[u8], end: Option<&[u8]>) -> Result<Box<dyn Records + '_>> {
        Ok(Box::new(ExpiringRecords(self.0.read(start, end)?, self)))
    }
}

impl Records for ExpiringRecords<'_> {
    fn next(&mut self) -> Result<Option<Record<'_>>> {
        let Expiring(_, key, at_ms) = self.1;
        let record = self.0.next()?;
        Ok(record.map(|record| {
            let expires_at_ms = (record.key == key.as_slice()).then_some(*at_ms);
            Record { expires_at_ms, ..record }
        }))
    }
}

#[test]
fn a_record_that_one_place_keeps_until_a_moment_later_is_no_difference() {
    let clock = Env::posix().clock;
    let map = |keys: &[&[u8]]| keys.iter().map(|key| (key.to_vec(), Vec::new())).collect::<Map>();
    let now_ms = clock.wall_ms();
    let soon_ms = now_ms + EXPIRY_TOLERANCE_MS - 1_000;
    for (at_ms, is_difference) in [(soon_ms, false), (now_ms + 60_000, true)] {
        let with = Expiring(map(&[b"a", b"b", b"c"]), b"b".to_vec(), at_ms);
        let without = map(&[b"a", b"c"]);
        for (from, to) in [(&with as &dyn Source, &without as &dyn Source), (&without, &with)] {
            let expected = digests_of(from, &clock).expect("maps can be read");
            assert_eq!(compare(from, to, &expected, &clock).is_err(), is_difference);
        }
    }
}

#[test]
fn records_before_those_that_are_expected_are_not_compared() {
    let clock = Env::posix().clock;
    let from = Map::from([(b"a".to_vec(), b"new".to_vec()), (b"c".to_vec(), Vec::new())]);
    let to = Map::from([
        (FIRST_KEY.to_vec(), Vec::new()),
        (b"a".to_vec(), b"old".to_vec()),
        (b"c".to_vec(), Vec::new()),
    ]);
    let mut expected = Ranges::new(b"b");
    expected.add(Record { key: b"c", value: b"", expires_at_ms: None });
    let line = compare(&from, &to, &expected, &clock).expect("the rest is equal");
    assert!(line.contains("; 2 before them, of earlier attempts, were not compared"), "{line}");
}
