use super::*;

fn line_of(format: LogFormat, fields: &[(&str, &dyn Display)]) -> String {
    line(format, 0, Level::Warn, "stall", fields)
}

#[test]
fn text_is_one_line_with_values_quoted_where_needed() {
    let line = line_of(
        LogFormat::Text,
        &[("reason", &"l0_tables"), ("wait_us", &17), ("why", &"a \"b\"\nc"), ("x", &"")],
    );
    assert_eq!(
        line,
        "1970-01-01T00:00:00.000Z warn  stall reason=l0_tables wait_us=17 why=\"a \\\"b\\\"\\nc\" x=\"\"\n"
    );
}

#[test]
fn json_is_one_object_a_line_with_numbers_as_numbers() {
    let line = line_of(
        LogFormat::Json,
        &[("wait_us", &17), ("key", &"a\"\n"), ("from", &"007"), ("level", &6)],
    );
    let parsed: Value = serde_json::from_str(&line).expect("a JSON object");
    assert_eq!(line.matches('\n').count(), 1);
    assert!(line.starts_with(
        r#"{"time":"1970-01-01T00:00:00.000Z","severity":"warn","event":"stall","wait_us":17,"#
    ));
    assert_eq!(parsed["key"], "a\"\n");
    assert_eq!(parsed["from"], "007");
    assert_eq!(parsed["level"], 6);
}
