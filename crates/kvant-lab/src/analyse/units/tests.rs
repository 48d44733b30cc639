use super::*;

#[test]
fn figures_have_the_digits_that_mean_something() {
    assert_eq!(rate(5.25), "5.2/s");
    assert_eq!(rate(4_998.0), "4,998/s");
    assert_eq!(rate(1_234_567.0), "1,234,600/s");
    assert_eq!(time(999.0), "999 ns");
    assert_eq!(time(999_936.0), "1.00 ms");
    assert_eq!(time(1_250_000.0), "1.25 ms");
    assert_eq!(time(38_240_000.0), "38.2 ms");
    assert_eq!(bytes(512.0), "512 bytes");
    assert_eq!(bytes(1_572_864.0), "1.50 MiB");
    assert_eq!(grouped(-1_000.0), "-1,000");
    assert_eq!(grouped(100.0), "100");
}
