//! One client's knowledge of its keys: the state that the server has acknowledged, and the
//! pending requests.
//!
//! 1. Keys belong to one client, which sends requests on one connection at a time: its history is a
//!    sequence.
//! 2. A server performs the requests of a connection in order (RFC 9112, 9.3.2), so a crash leaves
//!    a prefix of the pending ones: [`Ledger::reconcile`] determines which.
//! 3. A value follows from client, key and counter, so that the ledger stores no values and detects
//!    wrong ones.

use crate::connection::Response;
use kvant_env::rng::Rng;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Keys per client: few enough that most writes are overwrites, more than fit a memtable.
const KEYS: u64 = 500;
const VALUE_BYTES_MAX: u64 = 20_000;

/// Records by key, as the server returns them.
pub(crate) type Records = BTreeMap<Vec<u8>, Vec<u8>>;

/// One value that was written under a key.
#[derive(Clone, Copy, Debug)]
struct Version {
    counter: u64,
    value_bytes: usize,
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Put(u64, Version),
    Delete(u64),
    Get(u64),
}

/// See the module's comment.
pub(crate) struct Ledger {
    client: u64,
    rng: Rng,
    /// Of the last version.
    counter: u64,
    acknowledged: BTreeMap<u64, Version>,
    /// In the order of sending.
    pending: VecDeque<Op>,
}

impl Ledger {
    /// A client that has written nothing; `seed` determines its requests.
    pub(crate) fn new(client: u64, seed: u64) -> Ledger {
        Ledger {
            client,
            rng: Rng::new(seed),
            counter: 0,
            acknowledged: BTreeMap::new(),
            pending: VecDeque::new(),
        }
    }

    /// Draws up to `count_max` requests and records them as sent; returns their bytes and number.
    pub(crate) fn send_some(&mut self, count_max: u64) -> (Vec<u8>, u64) {
        let count = 1 + self.rng.below(count_max);
        let mut requests = Vec::new();
        for _ in 0..count {
            let number = self.rng.below(KEYS);
            let op = match self.rng.below(10) {
                0 => Op::Get(number),
                1..3 => Op::Delete(number),
                _ => Op::Put(number, self.next_version()),
            };
            self.request(op, &mut requests);
            self.pending.push_back(op);
        }
        (requests, count)
    }

    fn next_version(&mut self) -> Version {
        self.counter += 1;
        let scale = [1, 4, 100, 20_000][self.rng.below(4) as usize];
        Version {
            counter: self.counter,
            value_bytes: self.rng.below(VALUE_BYTES_MAX / scale + 1) as usize,
        }
    }

    fn request(&mut self, op: Op, out: &mut Vec<u8>) {
        let (method, number) = match op {
            Op::Put(number, _) => ("PUT", number),
            Op::Delete(number) => ("DELETE", number),
            Op::Get(number) => ("GET", number),
        };
        let mut target = format!("/v0/entity?id={}", self.key(number));
        let mut value = Vec::new();
        if let Op::Put(number, version) = op {
            value = self.value(number, version);
            // Ten years: another encoding, but no effect.
            if self.rng.one_in(4) {
                target += "&ttl=315360000";
            }
        }
        let head = format!(
            "{method} {target} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n",
            value.len()
        );
        out.extend_from_slice(head.as_bytes());
        out.extend_from_slice(&value);
    }

    /// Takes the response to the oldest pending request; whether it acknowledges a write.
    pub(crate) fn take_response(&mut self, response: &Response) -> bool {
        let op = self.pending.pop_front().expect("responses follow their requests");
        match (op, response.status) {
            (Op::Put(..), 201) | (Op::Delete(_), 202) => {
                apply(&mut self.acknowledged, op);
                true
            }
            (Op::Get(number), 200 | 404) => {
                let found = (response.status == 200).then_some(response.body.as_slice());
                self.assert_found(&self.acknowledged, number, found);
                false
            }
            // Stalled or stopping: nothing was written.
            (_, 503) => false,
            (op, status) => panic!(
                "client {}: {op:?} got {status}: {}",
                self.client,
                String::from_utf8_lossy(&response.body)
            ),
        }
    }

    /// Compares the records of a restarted server with the allowed states, and adopts the server's
    /// state for pending requests: it must not change afterwards. Removes this client's records
    /// from `found`. Returns the number of pending requests and how many of them were performed.
    pub(crate) fn reconcile(&mut self, found: &mut Records) -> (usize, usize) {
        let found: BTreeMap<u64, Vec<u8>> = (0..KEYS)
            .filter_map(|number| Some((number, found.remove(self.key(number).as_bytes())?)))
            .collect();
        let pending = std::mem::take(&mut self.pending);
        let touched: BTreeSet<u64> = pending.iter().map(|op| op.number()).collect();
        for number in (0..KEYS).filter(|number| !touched.contains(number)) {
            self.assert_found(&self.acknowledged, number, found.get(&number).map(Vec::as_slice));
        }
        // Of several prefixes with the same result, any will do.
        for performed in 0..=pending.len() {
            let mut state = self.acknowledged.clone();
            pending.iter().take(performed).for_each(|op| apply(&mut state, *op));
            let agrees =
                |number: &u64| self.is_found(&state, *number, found.get(number).map(Vec::as_slice));
            if touched.iter().all(agrees) {
                self.acknowledged = state;
                return (pending.len(), performed);
            }
        }
        let states: Vec<String> = touched
            .iter()
            .map(|number| {
                let (acknowledged, found) = (self.acknowledged.get(number), found.get(number));
                format!(
                    "key {number}: acknowledged {acknowledged:?}, found {}",
                    shown(found.map(Vec::as_slice))
                )
            })
            .collect();
        panic!(
            "client {}: the server kept no prefix of the pending {pending:?}\n{}",
            self.client,
            states.join("\n")
        );
    }

    /// A request for each of this client's keys.
    pub(crate) fn get_all(&mut self) -> impl Iterator<Item = Vec<u8>> + '_ {
        (0..KEYS).map(|number| {
            let mut request = Vec::new();
            self.request(Op::Get(number), &mut request);
            self.pending.push_back(Op::Get(number));
            request
        })
    }

    fn assert_found(&self, state: &BTreeMap<u64, Version>, number: u64, found: Option<&[u8]>) {
        assert!(
            self.is_found(state, number, found),
            "client {}, key {number}: expected {:?}, found {}",
            self.client,
            state.get(&number),
            shown(found)
        );
    }

    fn is_found(&self, state: &BTreeMap<u64, Version>, number: u64, found: Option<&[u8]>) -> bool {
        match (state.get(&number), found) {
            (Some(version), Some(value)) => self.value(number, *version) == value,
            (expected, found) => expected.is_none() && found.is_none(),
        }
    }

    /// Keys of many lengths; those of different clients are neighbours.
    fn key(&self, number: u64) -> String {
        format!("{number:03}-{}-{}", self.client, "k".repeat(number as usize % 90))
    }

    fn value(&self, number: u64, version: Version) -> Vec<u8> {
        let Version { counter, value_bytes } = version;
        let mut value =
            format!("counter {counter} key {number} client {};", self.client).into_bytes();
        let mut rng = Rng::new(self.client << 56 | number << 40 | counter);
        value.extend(rng.bytes(value_bytes.saturating_sub(value.len())));
        value.truncate(value_bytes);
        value
    }
}

impl Op {
    fn number(self) -> u64 {
        match self {
            Op::Put(number, _) | Op::Delete(number) | Op::Get(number) => number,
        }
    }
}

fn apply(state: &mut BTreeMap<u64, Version>, op: Op) {
    match op {
        Op::Put(number, version) => {
            state.insert(number, version);
        }
        Op::Delete(number) => {
            state.remove(&number);
        }
        Op::Get(_) => {}
    }
}

/// The readable part of a value.
fn shown(found: Option<&[u8]>) -> String {
    match found {
        None => "nothing".to_string(),
        Some(value) => {
            let start = &value[..value.len().min(48)];
            format!("{} bytes, {:?}", value.len(), String::from_utf8_lossy(start))
        }
    }
}
