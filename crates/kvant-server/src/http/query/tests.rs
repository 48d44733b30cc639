use super::*;
use kvant_env::rng::Rng;
use kvant_env::testing::entropy_seed;

fn key(query: &str) -> Vec<u8> {
    entity(Some(query), true).unwrap().key.to_vec()
}

#[test]
fn keys_are_percent_decoded_and_nothing_else() {
    assert_eq!(key("id=abc"), b"abc");
    assert_eq!(key("id=a+b"), b"a+b");
    assert_eq!(key("id=%61%2B%00%ff"), b"a+\0\xff");
    assert_eq!(key("id=a=b=&x"), b"a=b=");
    assert_eq!(key("id=%2525"), b"%25");
}

#[test]
fn random_keys_survive_encoding() {
    let seed = std::env::var("KVANT_TEST_SEED")
        .map_or_else(|_| entropy_seed(), |seed| seed.parse().unwrap());
    println!("KVANT_TEST_SEED={seed}");
    let mut rng = Rng::new(seed);
    for _ in 0..1000 {
        let len = 1 + rng.below(200) as usize;
        let wanted = rng.bytes(len);
        let plain = |byte: u8| byte.is_ascii_alphanumeric() && rng.clone().one_in(2);
        let encoded: String =
            wanted
                .iter()
                .map(|&byte| {
                    if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02x}") }
                })
                .collect();
        assert_eq!(key(&format!("id={encoded}")), wanted);
    }
}

#[test]
fn a_time_to_live_is_in_seconds() {
    assert_eq!(entity(Some("id=k&ttl=315360000"), true).unwrap().ttl_ms, Some(315_360_000_000));
    assert_eq!(entity(Some("id=k&ttl=x"), false).unwrap().ttl_ms, None);
    assert!(entity(Some("id=k&ttl=x"), true).is_err());
}

#[test]
fn text_is_utf_8() {
    assert_eq!(text(Some("dir=%2Fa%20b"), "dir").unwrap().as_deref(), Some("/a b"));
    assert_eq!(text(Some("other=1"), "dir").unwrap(), None);
    assert!(text(Some("dir=%ff"), "dir").is_err());
    assert!(text(Some("dir=a&dir=b"), "dir").is_err());
}
