//! `docs/lab-plan.schema.json` and the parser know the same keys, and shipped plans are valid.

use crate::plan::parse::TABLES;
use crate::plan::shipped;
use serde_json::Value;
use std::collections::BTreeSet;

fn schema() -> Value {
    let text = include_str!("../../../../../docs/lab-plan.schema.json");
    serde_json::from_str(text).unwrap()
}

fn keys(table: &Value) -> BTreeSet<&str> {
    table["properties"].as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn the_schema_and_the_parser_know_the_same_keys() {
    let schema = schema();
    for (name, known) in TABLES {
        let table = if *name == "plan" { &schema } else { &schema["$defs"][*name] };
        assert_eq!(keys(table), known.iter().copied().collect(), "{name}");
        let refuses_others = table["additionalProperties"] == Value::Bool(false);
        // The others are its axes.
        assert_eq!(refuses_others, *name != "sweep", "{name}");
    }
    let figures = &schema["$defs"]["known"]["properties"]["figures"];
    let known = crate::plan::parse::FIGURES.iter().copied().collect();
    assert_eq!(keys(figures), known);
}

#[test]
fn each_shipped_plan_is_valid() {
    let schema = schema();
    for plan in shipped() {
        let value: Value = toml::from_str(plan.text).unwrap();
        assert_eq!(problem(&value, &schema, &schema), None, "{}", plan.name);
    }
}

#[test]
fn a_wrong_plan_is_not_valid() {
    let schema = schema();
    for text in [
        "repeat = 3",
        "repeats = true",
        "[phase]\nmax = { find-max = false }",
        "[phase]\nall = { factors = [0.5, 2, 2] }",
        "[sweep]\nworkers = [2, 4, 2]",
        "[workload]\nget = { hit-ratio = 2 }",
        "[workload.get]\nkind = \"gets\"",
        "[[known]]\nworkload = \"get\"",
        "[subject.a.requests.get]\nconnections = 1",
    ] {
        let value: Value = toml::from_str(text).unwrap();
        assert!(problem(&value, &schema, &schema).is_some(), "{text}");
    }
}

/// Why `value` does not match `schema`, by those keywords that the schema uses.
fn problem(value: &Value, schema: &Value, root: &Value) -> Option<String> {
    for (keyword, rule) in schema.as_object().unwrap() {
        let found = match keyword.as_str() {
            "$schema" | "$defs" | "title" | "description" | "additionalProperties" => None,
            "$ref" => problem(value, root.pointer(&rule.as_str().unwrap()[1..]).unwrap(), root),
            "type" => (!has_type(value, rule)).then(|| format!("{value} is not of type {rule}")),
            "const" => (value != rule).then(|| format!("{value} is not {rule}")),
            "enum" => {
                let is_any = rule.as_array().unwrap().contains(value);
                (!is_any).then(|| format!("{value} is none of {rule}"))
            }
            "minimum" => (value.as_f64() < rule.as_f64()).then(|| format!("{value} is too small")),
            "maximum" => (value.as_f64() > rule.as_f64()).then(|| format!("{value} is too large")),
            "required" => rule
                .as_array()
                .unwrap()
                .iter()
                .find(|key| value.get(key.as_str().unwrap()).is_none())
                .map(|key| format!("{key} is missing in {value}")),
            "anyOf" => {
                let options = rule.as_array().unwrap();
                let found: Vec<String> =
                    options.iter().filter_map(|option| problem(value, option, root)).collect();
                (found.len() == options.len()).then(|| found.join("; "))
            }
            "items" => elements(value).iter().find_map(|item| problem(item, rule, root)),
            "uniqueItems" => {
                let items = elements(value);
                let is_repeated = |(at, item): (usize, &Value)| items[..at].contains(item);
                items.iter().enumerate().any(is_repeated).then(|| format!("{value} repeats one"))
            }
            "properties" => properties(value, rule, root),
            other => panic!("the schema uses `{other}`"),
        };
        if found.is_some() {
            return found;
        }
    }
    let others = schema.get("additionalProperties")?;
    let known = schema.get("properties");
    let mut unknown = value
        .as_object()?
        .iter()
        .filter(|(key, _)| known.is_none_or(|known| known.get(key.as_str()).is_none()));
    match others {
        Value::Bool(false) => unknown.next().map(|(key, _)| format!("`{key}` is unknown")),
        others => unknown.find_map(|(_, value)| problem(value, others, root)),
    }
}

/// None of what is no array: another keyword may refuse it.
fn elements(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn properties(value: &Value, rule: &Value, root: &Value) -> Option<String> {
    let rules = rule.as_object().unwrap();
    rules.iter().find_map(|(key, rule)| problem(value.get(key)?, rule, root))
}

fn has_type(value: &Value, name: &Value) -> bool {
    match name.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        other => panic!("the schema uses the type `{other}`"),
    }
}
