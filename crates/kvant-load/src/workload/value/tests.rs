use super::*;

fn lengths(values: &Values, count: u64) -> Vec<usize> {
    let mut rng = Rng::new(1);
    (0..count).map(|number| values.next(number, &mut rng).len()).collect()
}

#[test]
fn lengths_follow_the_configuration() {
    assert_eq!(lengths(&Values::new(ValueBytes::Fixed(0), 1), 2), [0, 0]);
    assert_eq!(lengths(&Values::new(ValueBytes::Fixed(100), 1), 2), [100, 100]);
    let growing = Values::new(ValueBytes::Growing { min: 3, max: 5 }, 1);
    assert_eq!(lengths(&growing, 7), [3, 4, 5, 3, 4, 5, 3]);
    let random = lengths(&Values::new(ValueBytes::Random { min: 1, max: 10_000 }, 1), 100_000);
    assert_eq!((random.iter().min(), random.iter().max()), (Some(&1), Some(&10_000)));
    let mean = random.iter().sum::<usize>() / random.len();
    assert!((4_900..5_100).contains(&mean), "{mean}");
}

#[test]
fn values_are_text_and_differ_from_each_other() {
    let values = Values::new(ValueBytes::Fixed(16), 1);
    let mut rng = Rng::new(1);
    let mut seen: Vec<_> =
        (0..1_000).map(|number| values.next(number, &mut rng).to_vec()).collect();
    assert!(seen.iter().flatten().all(u8::is_ascii_alphanumeric));
    seen.sort();
    seen.dedup();
    assert!(seen.len() > 980, "{} of 1000 values differ", seen.len());
}

#[test]
fn another_seed_gives_other_values() {
    let value = |seed| Values::new(ValueBytes::Fixed(16), seed).next(0, &mut Rng::new(1)).to_vec();
    assert_eq!(value(1), value(1));
    assert_ne!(value(1), value(2));
}
