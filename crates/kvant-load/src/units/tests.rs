use super::*;

#[test]
fn counts_are_parsed_as_in_wrk() {
    let read = |text| parse_count(text);
    assert_eq!(read("0"), Ok(0));
    assert_eq!(read("64"), Ok(64));
    assert_eq!(read("10k"), Ok(10_000));
    assert_eq!(read("10K"), Ok(10_000));
    assert_eq!(read("1M"), Ok(1_000_000));
    assert_eq!(read("1m"), Ok(1_000_000));
    assert_eq!(read("2g"), Ok(2_000_000_000));
    assert_eq!(read("3T"), Ok(3_000_000_000_000));
    assert_eq!(read("4p"), Ok(4_000_000_000_000_000));
    for wrong in
        ["", "k", "1.5k", "-1", "1kk", "10x", "10 k b", "1e3", "99999999999999999999", "19000P"]
    {
        let problem = read(wrong).expect_err(wrong);
        assert!(problem.contains(&format!("`{wrong}`")), "{problem}");
    }
}

#[test]
fn times_are_parsed_as_in_wrk_and_below_a_second() {
    let read = |text| parse_time(text);
    assert_eq!(read("30"), Ok(Duration::from_secs(30)));
    assert_eq!(read("90s"), Ok(Duration::from_secs(90)));
    assert_eq!(read("1m"), Ok(Duration::from_secs(60)));
    assert_eq!(read("1M"), Ok(Duration::from_secs(60)));
    assert_eq!(read("2h"), Ok(Duration::from_secs(7_200)));
    assert_eq!(read("250ms"), Ok(Duration::from_millis(250)));
    assert_eq!(read("50US"), Ok(Duration::from_micros(50)));
    for wrong in ["", "s", "1d", "1.5m", "-3s", "1 m x", "ms"] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn rates_have_decimals_lists_and_ramps() {
    assert_eq!(parse_rate("1.5k"), Ok(1_500.0));
    assert_eq!(parse_rate("0.5"), Ok(0.5));
    assert_eq!(parse_rate("0"), Ok(0.0));
    assert_eq!(parse_rates("10k,20K,0.04M"), Ok(vec![10_000.0, 20_000.0, 40_000.0]));
    assert_eq!(parse_rates("0"), Ok(vec![0.0]));
    assert_eq!(parse_ramp("0..50k"), Ok((0.0, 50_000.0)));
    assert_eq!(parse_ramp("50k..1.5k"), Ok((50_000.0, 1_500.0)));
    for wrong in ["", ".", "1.2.3", "k", "-5", "nan", "inf", "1e3"] {
        assert!(parse_rate(wrong).is_err(), "{wrong}");
    }
    for wrong in ["10k,", ",10k", "10k,,20k", "0,10k"] {
        assert!(parse_rates(wrong).is_err(), "{wrong}");
    }
    for wrong in ["10k", "..", "0..", "..5k", "0..0", "1k..2k..3k"] {
        assert!(parse_ramp(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn times_are_formatted_as_in_wrk() {
    let cases = [
        (0.0, "0.00us"),
        (650.0, "650.00us"),
        (828.07, "828.07us"),
        (849.99, "849.99us"),
        (850.0, "0.85ms"),
        (930.0, "0.93ms"),
        (1_210.0, "1.21ms"),
        (489_470.0, "489.47ms"),
        // The last unit of this list is never reached ...
        (907_490.0, "907.49ms"),
        (999_990.0, "999.99ms"),
        // ... but a whole second has a list of its own.
        (1_000_000.0, "1.00s"),
        (1_370_000.0, "1.37s"),
        (50_900_000.0, "50.90s"),
        (51_000_000.0, "0.85m"),
        (60_000_000.0, "1.00m"),
        (72_000_000.0, "1.20m"),
        (7_200_000_000.0, "120.00m"),
    ];
    for (us, expected) in cases {
        assert_eq!(format_time_us(us), expected);
    }
    assert_eq!(format_time_ns(828_070), "828.07us");
}

#[test]
fn whole_times_are_formatted_as_in_wrk() {
    let cases = [
        (1.0, "1s"),
        (50.0, "50s"),
        (51.0, "1m"),
        (55.0, "1m"),
        (90.0, "2m"),
        (150.0, "2m"),
        (7_200.0, "120m"),
    ];
    for (seconds, expected) in cases {
        assert_eq!(format_time_s(seconds), expected);
    }
}

#[test]
fn numbers_and_bytes_are_formatted_as_in_wrk() {
    let metric = [
        (0.0, "0.00"),
        (472.48, "472.48"),
        (849.0, "849.00"),
        (850.0, "0.85k"),
        (1_050.0, "1.05k"),
        (56_780.0, "56.78k"),
        (850_000.0, "0.85M"),
        (1e15, "1000.00T"),
    ];
    for (number, expected) in metric {
        assert_eq!(format_metric(number), expected);
    }
    let binary = [
        (370.0, "370.00"),
        (870.0, "870.00"),
        (871.0, "0.85K"),
        (73_994.24, "72.26K"),
        (80_394_322.0, "76.67M"),
        (1_342_177.28, "1.28M"),
    ];
    for (bytes, expected) in binary {
        assert_eq!(format_binary(bytes), expected);
    }
}
