use super::*;

#[test]
fn an_arrangement_keeps_how_long_an_event_is_present_in_each_stratum() {
    let mut rng = Rng::new(5);
    let is_present: Vec<bool> = (0..300).map(|at| at % 37 < 9 || at > 290).collect();
    let strata: Vec<usize> = (0..300).map(|at| at / 100).collect();
    let count = |flags: &[bool], stratum: usize| -> usize {
        (0..300).filter(|at| flags[*at] && strata[*at] == stratum).count()
    };
    let arranger = Arranger::new(&is_present, &strata);
    let mut seen = vec![0; 300];
    for _ in 0..2_000 {
        let random = arranger.arrange(&mut rng);
        for stratum in 0..3 {
            assert_eq!(count(&random, stratum), count(&is_present, stratum));
        }
        seen.iter_mut().zip(&random).for_each(|(seen, is)| *seen += usize::from(*is));
    }
    // Every window of a stratum is covered as often as the others.
    for stratum in 0..3 {
        let expected = 2_000.0 * count(&is_present, stratum) as f64 / 100.0;
        for (at, seen) in seen.iter().enumerate().filter(|(at, _)| strata[*at] == stratum) {
            let deviation = (*seen as f64 - expected).abs() / expected.sqrt();
            assert!(deviation < 6.0, "window {at}: {seen} of {expected}");
        }
    }
}

#[test]
fn what_is_always_present_has_nothing_attributable() {
    assert_eq!(attributable(100.0, 100.0, 100.0), 0.0);
    assert_eq!(attributable(100.0, 50.0, 100.0), 100.0);
    assert_eq!(attributable(50.0, 50.0, 100.0), 0.0);
    assert_eq!(attributable(75.0, 50.0, 100.0), 50.0);
    assert_eq!(attributable(10.0, 50.0, 100.0), 0.0);
}
