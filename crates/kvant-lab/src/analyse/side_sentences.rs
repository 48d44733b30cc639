//! The verdict of a comparison of two sides, in words.

use super::sentences::text;
use crate::comparison::assertion::Decision;
use crate::comparison::intervals::BLOCKS_MIN;
use crate::model::{Compared, Sides, Text};

/// Differences that the verdict names.
const NAMED_MAX: usize = 3;

/// What differs or how much would have been seen, the assertions, and how far to trust it.
pub(super) fn verdict(sides: &Sides, trust: Text) -> Vec<Text> {
    let mut sentences = differences(sides);
    sentences.extend(assertions(sides));
    sentences.push(trust);
    sentences
}

/// Words as a sentence.
fn sentence(words: &str) -> String {
    let mut rest = words.chars();
    let first = rest.next().into_iter().flat_map(char::to_uppercase);
    first.chain(rest).chain(['.']).collect()
}

fn differences(sides: &Sides) -> Vec<Text> {
    let count = sides.claimed().count();
    if count == 0 {
        if let Some(withheld) = sides.figures.iter().find(|one| one.is_withheld()) {
            let claim = withheld.claim();
            return vec![text(sentence(&claim.en), sentence(&claim.ru))];
        }
        return vec![text(
            format!("Nothing is claimed: no figure has {BLOCKS_MIN} whole blocks."),
            format!("Ничего не утверждается: ни у одной величины нет {BLOCKS_MIN} полных блоков."),
        )];
    }
    // Those of the whole server first, then the strongest.
    let mut different: Vec<&Compared> =
        sides.claimed().filter(|one| one.difference().is_some()).collect();
    let distance = |one: &Compared| one.ratio.unwrap_or(1.0).ln().abs();
    different.sort_by(|x, y| {
        let layers = x.layer.is_empty().cmp(&y.layer.is_empty()).reverse();
        layers.then(distance(y).total_cmp(&distance(x)))
    });
    if different.is_empty() {
        let most = |x: &&Compared, y: &&Compared| {
            x.detectable_part.unwrap_or(0.0).total_cmp(&y.detectable_part.unwrap_or(0.0))
        };
        let whole = sides.claimed().filter(|one| one.layer.is_empty());
        let Some(least_sure) = whole.max_by(most) else { return Vec::new() };
        let (place, claim) = (place(least_sure), least_sure.claim());
        return vec![text(
            format!("A and B do not differ in any of {count} figures. {place}: {}.", claim.en),
            format!("A и B не отличаются ни одной из величин ({count}). {place}: {}.", claim.ru),
        )];
    }
    let mut sentences = vec![text(
        format!("A and B differ in {} of {count} figures.", different.len()),
        format!("A и B отличаются, величин: {} из {count}.", different.len()),
    )];
    sentences.extend(different.into_iter().take(NAMED_MAX).map(|one| {
        let claim = one.claim();
        let (place, ratio) = (place(one), one.ratio.unwrap_or(1.0));
        let (low, high) = one.interval.unwrap_or((ratio, ratio));
        text(
            format!("{}: {place} is {ratio:.3} times that of A ({low:.3} .. {high:.3}).", claim.en),
            format!("{}: {place} в {ratio:.3} раза от A ({low:.3} .. {high:.3}).", claim.ru),
        )
    }));
    sentences
}

/// Such as `p99 of get held`.
fn place(one: &Compared) -> String {
    let layer = if one.layer.is_empty() { String::new() } else { format!(" ({})", one.layer) };
    format!("{}, {}{layer}", one.case(), one.figure.name())
}

fn assertions(sides: &Sides) -> Option<Text> {
    let all = &sides.assertions;
    let with = |decision| {
        let of = all.iter().filter(move |one| one.decision == decision);
        of.map(|one| format!("`{}`", one.text)).collect::<Vec<_>>()
    };
    let [violated, undecided] = [Decision::Violated, Decision::Undecided].map(with);
    let list = |what: &str, named: &[String]| match named {
        [] => String::new(),
        named => format!("; {what}: {}", named.join(", ")),
    };
    let held = all.len() - violated.len() - undecided.len();
    (!all.is_empty()).then(|| {
        let (en, ru) = (list("violated", &violated), list("нарушены", &violated));
        text(
            format!(
                "{held} of {} assertions hold{en}{}.",
                all.len(),
                list("undecided", &undecided)
            ),
            format!(
                "Утверждений выполнено: {held} из {}{ru}{}.",
                all.len(),
                list("не решены", &undecided)
            ),
        )
    })
}
