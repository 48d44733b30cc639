//! A server whose stages take known times, and can be slowed down.
//!
//! Threads: one for each connection. Two steps follow each other under one lock, the third is under
//! another one: a pipeline of two.

use kvant_base::dilation::{self, STAGE_COUNT, UNIT};
use kvant_base::lock::NamedMutex;
use kvant_base::tag::{self, Activity, Stage};
use kvant_env::clock::system_ns;

const RESPONSE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
const CONFLICT: &str = "HTTP/1.1 409 Conflict\r\nContent-Length: 0\r\n\r\n";

static FIRST: NamedMutex<()> = NamedMutex::new("first", ());
static SECOND: NamedMutex<()> = NamedMutex::new("second", ());

/// Serves a request.
pub(crate) fn respond(path: &str) -> Vec<u8> {
    if let Some((_, query)) = path.split_once("/v0/admin/what-if?") {
        return slow_down(query).as_bytes().to_vec();
    }
    {
        let _alone = FIRST.lock();
        spin(Stage::Parse, 200_000);
        spin(Stage::Table, 100_000);
    }
    let _alone = SECOND.lock();
    spin(Stage::Respond, 100_000);
    RESPONSE.as_bytes().to_vec()
}

fn spin(stage: Stage, ns: u64) {
    let _tag = tag::enter_at(Activity::Get, stage);
    let until_ns = system_ns() + ns;
    while system_ns() < until_ns {
        std::hint::spin_loop();
    }
}

fn slow_down(query: &str) -> &'static str {
    let (mut added, mut for_ns) = ([0; STAGE_COUNT], 0);
    for (name, value) in query.split('&').map(|pair| pair.split_once('=').unwrap()) {
        match name {
            "for" => for_ns = value.strip_suffix("ms").unwrap().parse::<u64>().unwrap() * 1_000_000,
            _ => {
                for pair in value.split(',') {
                    let (stage, percent) = pair.split_once(':').unwrap();
                    let parts = percent.parse::<f64>().unwrap() * f64::from(UNIT) / 100.0;
                    added[Stage::from_name(stage).unwrap() as usize] = parts.round() as u32;
                }
            }
        }
    }
    match dilation::begin(added, for_ns, system_ns) {
        Some(_) => RESPONSE,
        None => CONFLICT,
    }
}
