//! The few arguments that chores take: `--name VALUE` and `--name`.

use std::collections::BTreeMap;

/// Refuses any argument.
pub(crate) fn none(arguments: &[String]) -> Result<(), String> {
    numbers(arguments, &[]).map(|_| ())
}

/// Reads `--NAME NUMBER` pairs; each name must be one of `known`, and is given at most once.
pub(crate) fn numbers(
    arguments: &[String],
    known: &[&'static str],
) -> Result<BTreeMap<&'static str, u64>, String> {
    let mut values = BTreeMap::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let name = known
            .iter()
            .find(|name| argument.strip_prefix("--") == Some(**name))
            .ok_or_else(|| format!("unknown argument {argument:?}"))?;
        let text = rest.next().ok_or_else(|| format!("--{name} needs a number"))?;
        let value = text.parse().map_err(|_| format!("--{name} {text:?} is not a number"))?;
        if values.insert(*name, value).is_some() {
            return Err(format!("--{name} is given twice"));
        }
    }
    Ok(values)
}

/// Nothing, or `--release`.
pub(crate) fn release(arguments: &[String]) -> Result<bool, String> {
    match arguments {
        [] => Ok(false),
        [flag] if flag == "--release" => Ok(true),
        _ => Err("the only argument is --release".to_string()),
    }
}

#[cfg(test)]
mod tests;
