use super::{compare, digests_of};
use crate::commands::copy::records::tests::{Map, random_key};
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
