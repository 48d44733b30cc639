use super::{FIRST_KEY, Record, Records, Source, last_key};
use kvant_base::Result;
use kvant_env::rng::Rng;
use kvant_env::testing::entropy_seed;
use std::collections::BTreeMap;
use std::ops::Bound;

/// Records in memory.
pub(crate) type Map = BTreeMap<Vec<u8>, Vec<u8>>;

struct MapRecords<'a>(std::collections::btree_map::Range<'a, Vec<u8>, Vec<u8>>);

impl Records for MapRecords<'_> {
    fn next(&mut self) -> Result<Option<Record<'_>>> {
        Ok(self.0.next().map(|(key, value)| Record { key, value, expires_at_ms: None }))
    }
}

impl Source for Map {
    fn read(&self, start: &[u8], end: Option<&[u8]>) -> Result<Box<dyn Records + '_>> {
        let end = end.map_or(Bound::Unbounded, Bound::Excluded);
        Ok(Box::new(MapRecords(self.range::<[u8], _>((Bound::Included(start), end)))))
    }
}

/// None or few different bytes, those at the ends of the order among them.
pub(crate) fn random_key(rng: &mut Rng) -> Vec<u8> {
    let len = rng.below(5);
    (0..len).map(|_| [0, 1, 0x7f, 0x80, 0xfe, 0xff][rng.below(6) as usize]).collect()
}

#[test]
fn the_last_key_is_that_of_a_sorted_map() {
    let seed = entropy_seed();
    println!("seed {seed}");
    let mut rng = Rng::new(seed);
    for _ in 0..500 {
        let mut map = Map::new();
        for _ in 0..rng.below(8) {
            map.insert(random_key(&mut rng), Vec::new());
        }
        let found = last_key(&map).expect("a map can be read");
        assert_eq!(found.as_ref(), map.last_key_value().map(|(key, _)| key), "{map:?}");
    }
    let map = Map::from([(FIRST_KEY.to_vec(), Vec::new())]);
    assert_eq!(last_key(&map).expect("a map can be read"), Some(FIRST_KEY.to_vec()));
}
