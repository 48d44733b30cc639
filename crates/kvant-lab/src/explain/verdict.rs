//! An explanation in sentences.

use super::evidence::Evidence;
use super::model::{Cause, CpuUse, Explanation, Ground, Row, Share, SlowTime};
use super::suspects::Suspect;
use super::words::{clock, percent, rate, time};

/// The percentiles that the verdict speaks of, in this order of preference.
const PREFERRED: [f64; 4] = [99.0, 99.9, 90.0, 50.0];
/// Operations that the verdict speaks of.
const OPERATIONS_MAX: usize = 4;
/// Shares below this part are not told.
const PART_MIN: f64 = 0.05;
/// Uses of CPU time that the verdict speaks of.
const CPU_USES_MAX: usize = 3;
/// A use of CPU time that grew by less than this part of a CPU is not told.
const CPU_GROWTH_MIN: f64 = 0.1;
/// A rate that changed by less than this factor is as otherwise.
const RATE_FACTOR_MIN: f64 = 1.5;
/// Windows without which intervals say little.
const WINDOWS_MIN: usize = 100;

/// What was slow and why, the operation with the greatest excess first.
pub(super) fn verdict(explanation: &Explanation) -> Vec<String> {
    let mut told: Vec<&Row> = Vec::new();
    for row in &explanation.rows {
        if told.iter().any(|other| other.operation == row.operation) {
            continue;
        }
        let of_operation =
            || explanation.rows.iter().filter(|other| other.operation == row.operation);
        let preferred = PREFERRED.iter().find_map(|percent| {
            of_operation().find(|row| row.percent == *percent && row.excess_ns > 0)
        });
        told.extend(preferred.or_else(|| of_operation().next_back()));
    }
    told.sort_by_key(|row| std::cmp::Reverse((row.excess_ns, row.value_ns)));
    told.truncate(OPERATIONS_MAX);
    if told.is_empty() {
        return vec!["There are too few requests to explain anything.".to_owned()];
    }
    let mut sentences = Vec::new();
    for row in told {
        sentences.push(row_sentence(explanation, row));
        let slow_time = explanation.slow_time.as_ref();
        if let Some(slow_time) = slow_time.filter(|one| one.operation == row.operation) {
            sentences.push(slow_time_sentence(explanation, slow_time));
        }
    }
    sentences.extend(cpu_sentence(&explanation.cpu));
    sentences
}

/// When it was, and whether there were more or fewer requests than otherwise.
fn slow_time_sentence(explanation: &Explanation, slow_time: &SlowTime) -> String {
    let at = |at_ns| clock(at_ns, explanation.wall_origin_ns);
    let (from, to) = (at(slow_time.start_ns), at(slow_time.end_ns));
    let which = match slow_time.stretch_count {
        1 => String::new(),
        count => format!(", the longest of {count} such stretches"),
    };
    let has_changed = |calm: f64, slow: f64| {
        let (less, more) = if calm < slow { (calm, slow) } else { (slow, calm) };
        more >= 1.0 && more >= less * RATE_FACTOR_MIN
    };
    let changed: Vec<String> = slow_time
        .rates
        .iter()
        .filter(|one| has_changed(one.calm, one.slow))
        .map(|one| {
            format!(
                "{} {} requests a second (otherwise {})",
                rate(one.slow),
                one.operation,
                rate(one.calm)
            )
        })
        .collect();
    let meanwhile = match &changed[..] {
        _ if slow_time.rates.is_empty() => String::new(),
        [] => "; meanwhile the server answered as many requests as otherwise".to_owned(),
        changed => format!("; meanwhile the server answered {}", changed.join(", ")),
    };
    format!("{} was slow from {from} to {to}{which}{meanwhile}.", slow_time.operation)
}

/// The uses that grew most, if any did; they are in this order.
fn cpu_sentence(uses: &[CpuUse]) -> Option<String> {
    let grown: Vec<String> = uses
        .iter()
        .take_while(|used| used.slow - used.calm >= CPU_GROWTH_MIN)
        .take(CPU_USES_MAX)
        .map(|used| {
            let [slow, calm] = [used.slow, used.calm].map(percent);
            format!("{} ({slow} of a CPU, otherwise {calm})", used.purpose)
        })
        .collect();
    (!grown.is_empty())
        .then(|| format!("While requests were slow, the server did more of: {}.", grown.join(", ")))
}

fn row_sentence(explanation: &Explanation, row: &Row) -> String {
    let (operation, percent_name) = (&row.operation, row.percent);
    if row.excess_ns == 0 {
        return format!(
            "p{percent_name} of {operation} was {}, and was the same all the time: nothing \
             disturbed it.",
            time(row.value_ns)
        );
    }
    let shares: Vec<String> = explanation
        .told_shares(row)
        .into_iter()
        .filter(|share| share.part >= PART_MIN)
        .map(|share| match explanation.effect_of(row, &share) {
            Some(effect) => format!("{} ({})", share_words(&share), effect.words()),
            None => share_words(&share),
        })
        .collect();
    format!(
        "p{percent_name} of {operation} was {}, {} above its undisturbed level of {}: {}.",
        time(row.value_ns),
        time(row.excess_ns),
        time(row.level_ns),
        shares.join("; ")
    )
}

/// A share as a clause: `96 % (91 to 99) coincide with flush`.
pub(super) fn share_words(share: &Share) -> String {
    let part = format!("{} ({})", percent(share.part), interval(share));
    let cause = share.cause.words();
    let or: String = share.or.iter().map(|other| format!(" or {}", other.words())).collect();
    match (share.ground, &share.cause) {
        (_, Cause::Unexplained) => format!("{part} is unexplained"),
        (Ground::Direct, _) => format!("{part} was waiting for {cause}"),
        (Ground::Coincidence, _) if or.is_empty() => format!("{part} coincides with {cause}"),
        (Ground::Coincidence, _) => {
            format!("{part} coincides with {cause}{or}, which cannot be told apart")
        }
        (Ground::Rest, _) => format!("{part} was {cause}"),
    }
}

/// The interval of a share: `91 to 99`.
pub(super) fn interval(share: &Share) -> String {
    format!("{:.0} to {:.0}", share.low * 100.0, share.high * 100.0)
}

/// What limits the trust in it.
pub(super) fn warnings(evidence: &Evidence, suspects: &[Suspect]) -> Vec<String> {
    let mut warnings = Vec::new();
    let count = evidence.windows.len();
    if count < WINDOWS_MIN {
        warnings.push(format!("There are only {count} windows: intervals say little."));
    }
    if evidence.requests.is_empty() && count > 0 {
        warnings.push(
            "Phases of requests are not known: waiting behind other requests cannot be told from \
             what is unexplained."
                .to_owned(),
        );
    }
    let has = |of: fn(&super::evidence::MachineWindow) -> bool| {
        evidence.windows.iter().any(|window| of(&window.machine))
    };
    if count > 0 && !has(|machine| machine.stolen_ns.is_some()) {
        warnings.push("Time that the hypervisor took is not known.".to_owned());
    }
    if count > 0 && !has(|machine| machine.run_queue_wait_ns.is_some()) {
        warnings
            .push("The time that the server's threads waited for a CPU is not known.".to_owned());
    }
    for suspect in suspects.iter().filter(|suspect| suspect.is_always_there(evidence)) {
        warnings.push(format!(
            "{} was there nearly all the time: there is nothing to compare it with.",
            suspect.cause.words()
        ));
    }
    warnings
}
