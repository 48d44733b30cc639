use super::*;

fn law(lambda: f64, sigma: f64, kappa: f64) -> Vec<(f64, f64)> {
    let x = |n: f64| lambda * n / (1.0 + sigma * (n - 1.0) + kappa * n * (n - 1.0));
    [1.0, 2.0, 4.0, 8.0, 16.0, 64.0, 256.0, 1_024.0].map(|n| (n, x(n))).to_vec()
}

#[track_caller]
fn assert_close(found: f64, expected: f64) {
    let error = (found - expected).abs();
    assert!(error <= 1e-6 * expected.abs().max(1e-6), "{found} is not {expected}");
}

#[test]
fn the_coefficients_of_exact_points_are_found() {
    let (found, _) = fit(&law(1_000.0, 0.05, 0.0002));
    let found = found.unwrap();
    assert_close(found.lambda, 1_000.0);
    assert_close(found.sigma, 0.05);
    assert_close(found.kappa, 0.0002);
    assert_close(found.peak.unwrap(), (0.95f64 / 0.0002).sqrt());
    assert_close(found.r2, 1.0);
}

#[test]
fn contention_alone_has_no_peak() {
    let (found, text) = fit(&law(500.0, 0.1, 0.0));
    let found = found.unwrap();
    assert_close(found.sigma, 0.1);
    assert!(found.kappa < 1e-12 || found.peak.is_some_and(|peak| peak > 1e5), "{found:?}");
    assert!(text.en.contains("fits"), "{}", text.en);
}

#[test]
fn points_without_a_law_say_so() {
    let zigzag = [(1.0, 100.0), (2.0, 900.0), (4.0, 50.0), (8.0, 800.0), (16.0, 20.0)];
    let (found, text) = fit(&zigzag);
    assert_eq!(found, None);
    assert!(text.en.contains("does not fit"), "{}", text.en);
    let (found, text) = fit(&zigzag[..3]);
    assert_eq!(found, None);
    assert!(text.en.contains("at least 4"), "{}", text.en);
}
