//! Validates JSON against a schema (draft 2020-12) with these keywords: `type`, `properties`,
//! `items`, `required`, `additionalProperties`, `$ref` into `$defs`, `anyOf`, `const`, `enum`,
//! `minimum`, `minItems`. Panics at any other keyword, so that none is ignored. Stricter than the
//! standard: an undescribed property is a problem.

use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Keywords without meaning for validation.
const NOTES: &[&str] = &["$schema", "$id", "$defs", "title", "description", "examples"];

pub(super) struct Schema(Value);

impl Schema {
    pub(super) fn parse(text: &str) -> Schema {
        Schema(serde_json::from_str(text).unwrap())
    }

    /// Every violation of the schema in `value`.
    pub(super) fn problems_of(&self, value: &Value) -> Vec<String> {
        let mut problems = Vec::new();
        self.check(&self.0, value, "", &mut problems);
        problems
    }

    /// Described properties that do not occur in `value`.
    pub(super) fn properties_not_in(&self, value: &Value) -> BTreeSet<String> {
        let mut all = BTreeSet::new();
        self.properties(&mut |name, _| {
            all.insert(name.to_owned());
        });
        let mut met = BTreeSet::new();
        collect_met(self, &self.0, value, "#", &mut met);
        all.difference(&met).cloned().collect()
    }

    /// Properties without a description.
    pub(super) fn properties_without_description(&self) -> Vec<String> {
        let mut silent = Vec::new();
        self.properties(&mut |name, schema| {
            if schema.get("description").is_none() {
                silent.push(name.to_owned());
            }
        });
        silent
    }

    /// Calls `see` with `DEFINITION/PROPERTY` and the schema of each property.
    fn properties(&self, see: &mut dyn FnMut(&str, &Value)) {
        let defs = self.0["$defs"].as_object().unwrap();
        let defs = defs.iter().map(|(name, schema)| (format!("#/$defs/{name}"), schema));
        for (def, schema) in defs.chain([("#".to_owned(), &self.0)]) {
            for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
                see(&format!("{def}/{name}"), schema);
            }
        }
    }

    fn resolve<'a>(&'a self, schema: &'a Value) -> &'a Value {
        match schema.get("$ref").and_then(Value::as_str) {
            Some(target) => self.0.pointer(&target[1..]).unwrap(),
            None => schema,
        }
    }

    fn check(&self, schema: &Value, value: &Value, at: &str, problems: &mut Vec<String>) {
        let keywords: &Map<String, Value> = schema.as_object().unwrap();
        for (keyword, wanted) in keywords {
            let problem = match keyword.as_str() {
                "$ref" => {
                    self.check(self.resolve(schema), value, at, problems);
                    None
                }
                "type" => (!has_type(value, wanted)).then(|| format!("is not of type {wanted}")),
                "const" => (value != wanted).then(|| format!("is not {wanted}")),
                "enum" => (!wanted.as_array().unwrap().contains(value))
                    .then(|| format!("is none of {wanted}")),
                "minimum" => {
                    let is_less =
                        value.as_f64().is_some_and(|number| number < wanted.as_f64().unwrap());
                    is_less.then(|| format!("is less than {wanted}"))
                }
                "minItems" => {
                    let is_short = value
                        .as_array()
                        .is_some_and(|items| (items.len() as u64) < wanted.as_u64().unwrap());
                    is_short.then(|| format!("has fewer than {wanted} items"))
                }
                "anyOf" => {
                    let fits = |schema: &Value| {
                        let mut inner = Vec::new();
                        self.check(schema, value, at, &mut inner);
                        inner.is_empty()
                    };
                    (!wanted.as_array().unwrap().iter().any(fits))
                        .then(|| "fits none of anyOf".to_owned())
                }
                "required" => {
                    for name in wanted.as_array().unwrap() {
                        if value.is_object() && value.get(name.as_str().unwrap()).is_none() {
                            problems.push(format!("{at}: lacks {name}"));
                        }
                    }
                    None
                }
                "properties" => {
                    for (name, value) in value.as_object().into_iter().flatten() {
                        match wanted.get(name) {
                            Some(schema) => {
                                self.check(schema, value, &format!("{at}/{name}"), problems)
                            }
                            // Other readers accept what later versions add; all properties of
                            // this version are described.
                            None => problems.push(format!("{at}: {name} is not described")),
                        }
                    }
                    None
                }
                "additionalProperties" => {
                    for (name, value) in value.as_object().into_iter().flatten() {
                        self.check(wanted, value, &format!("{at}/{name}"), problems);
                    }
                    None
                }
                "items" => {
                    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.check(wanted, item, &format!("{at}/{index}"), problems);
                    }
                    None
                }
                note if NOTES.contains(&note) => None,
                other => {
                    panic!("{at}: the keyword {other} is not implemented")
                }
            };
            problems.extend(problem.map(|problem| format!("{at}: {value} {problem}")));
        }
    }
}

fn has_type(value: &Value, wanted: &Value) -> bool {
    let is = |name: &str| match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        other => panic!("no type {other}"),
    };
    match wanted {
        Value::Array(names) => names.iter().any(|name| is(name.as_str().unwrap())),
        name => is(name.as_str().unwrap()),
    }
}

/// Collects `DEFINITION/PROPERTY` of each described property that `value` has.
fn collect_met(
    whole: &Schema,
    schema: &Value,
    value: &Value,
    def: &str,
    met: &mut BTreeSet<String>,
) {
    if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
        collect_met(whole, whole.resolve(schema), value, target, met);
    }
    for schema in schema.get("anyOf").and_then(Value::as_array).into_iter().flatten() {
        collect_met(whole, schema, value, def, met);
    }
    for (name, schema) in schema.get("properties").and_then(Value::as_object).into_iter().flatten()
    {
        if let Some(value) = value.get(name).filter(|value| !value.is_null()) {
            met.insert(format!("{def}/{name}"));
            collect_met(whole, schema, value, &format!("{def}/{name}"), met);
        }
    }
    if let Some(items) = schema.get("items") {
        for item in value.as_array().into_iter().flatten() {
            collect_met(whole, items, item, def, met);
        }
    }
}
