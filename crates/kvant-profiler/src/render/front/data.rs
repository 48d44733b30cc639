//! The data of a page: base64 of zlib of
//!
//! ```text
//! length of the JSON text: u32, little-endian
//! JSON text: facts, names, and for each column its name, count of numbers and length in bytes
//! columns, concatenated: LEB128 numbers
//! ```
//!
//! Invariants:
//! 1. Addresses become functions: a node of the tree is a function at a line, inlined ones
//!    included, so pages need no symbols.
//! 2. Equal recordings give equal data: everything is in the order of the recording.
//!
//! `data.js` reads it.

use super::origin::{self, Origin};
use crate::recording::{CpuSampling, Frame, Function, Kind, Recording, Sample};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use indexmap::IndexSet;
use kvant_base::tag::{Activity, Stage};
use serde_json::json;
use std::io::Write;

const US_NS: u64 = 1_000;

/// Encodes a recording for its page.
pub fn encode(recording: &Recording) -> String {
    let mut columns = Columns::default();
    let tree = Tree::of(recording);
    tree.columns(&mut columns);
    let mut kinds = Vec::new();
    for kind in Kind::ALL {
        let samples: Vec<&Sample> =
            recording.samples.iter().filter(|sample| sample.kind == kind).collect();
        if !samples.is_empty() {
            kinds.push(kind.name());
            sample_columns(kind, &samples, &tree, &mut columns);
        }
    }
    let facts = &recording.facts;
    let meta = json!({
        "facts": facts,
        "durationUs": range_us(recording),
        "notSampledNs": recording.not_sampled_ns(),
        "blindSpot": facts.cpu.as_ref().and_then(CpuSampling::blind_spot),
        "sampleCount": recording.samples.len(),
        "hasSymbols": !recording.symbols.is_empty(),
        "threads": recording.threads,
        "names": recording.names,
        "activities": Activity::ALL.map(Activity::name),
        "stages": Stage::ALL.map(Stage::name),
        "spans": recording.spans,
        "functions": tree.functions.iter().map(|function| function.name).collect::<Vec<_>>(),
        "files": tree.files.iter().collect::<Vec<_>>(),
        "kinds": kinds,
        "columns": columns.index,
    });
    let text = meta.to_string();
    let length = u32::try_from(text.len()).expect("the limits on texts keep them below 4 GiB");
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::best());
    let written = [&length.to_le_bytes()[..], text.as_bytes(), &columns.bytes]
        .into_iter()
        .try_for_each(|part| packed.write_all(part))
        .and_then(|()| packed.finish());
    BASE64_STANDARD.encode(written.expect("a vector takes all"))
}

/// The end of the whole range, which is half open on the page: it includes the microsecond of the
/// last sample.
fn range_us(recording: &Recording) -> u64 {
    let ends_ns = recording.samples.iter().map(|sample| sample.time_ns + sample.duration_ns);
    let past_last_us = ends_ns.max().map_or(0, |end_ns| end_ns / US_NS + 1);
    recording.facts.duration_ns.div_ceil(US_NS).max(past_last_us)
}

/// Columns of numbers, by name.
#[derive(Default)]
struct Columns {
    /// Name, count of numbers, length in bytes.
    index: Vec<(String, usize, usize)>,
    bytes: Vec<u8>,
}

impl Columns {
    fn add(&mut self, name: String, numbers: impl Iterator<Item = u64>) {
        let start = self.bytes.len();
        let mut count = 0;
        for number in numbers {
            kvant_base::varint::put_u64(&mut self.bytes, number);
            count += 1;
        }
        self.index.push((name, count, self.bytes.len() - start));
    }
}

fn sample_columns(kind: Kind, samples: &[&Sample], tree: &Tree<'_>, columns: &mut Columns) {
    let mut add = |column: &str, number: &dyn Fn(&Sample) -> u64| {
        let numbers = samples.iter().map(|sample| number(sample));
        columns.add(format!("{}.{column}", kind.name()), numbers);
    };
    // Ends are rounded like starts, so that a wait ends where the next wait of its thread starts.
    add("duration_us", &|sample| {
        (sample.time_ns + sample.duration_ns) / US_NS - sample.time_ns / US_NS
    });
    add("thread", &|sample| sample.thread.into());
    add("activity", &|sample| sample.tag.activity as u64);
    add("stage", &|sample| sample.tag.stage as u64);
    add("name", &|sample| sample.name.into());
    add("node", &|sample| tree.of_stack[sample.stack as usize].into());
    add("weight", &|sample| sample.weight);
    add("live", &|sample| sample.is_live.into());
    let mut last_us = 0;
    let gaps_us = samples.iter().map(|sample| {
        let time_us = sample.time_ns / US_NS;
        let gap_us = time_us - last_us;
        last_us = time_us;
        gap_us
    });
    columns.add(format!("{}.gap_us", kind.name()), gaps_us);
}

/// A node of the page's tree: a function at a line, called by its parent.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Node {
    parent: u32,
    function: u32,
    line: u32,
    is_inlined: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct PageFunction<'a> {
    name: &'a str,
    file: u32,
    origin: Origin,
}

/// The recording's tree of addresses as a tree of functions.
struct Tree<'a> {
    files: IndexSet<&'a str>,
    functions: IndexSet<PageFunction<'a>>,
    nodes: IndexSet<Node>,
    of_stack: Vec<u32>,
}

impl<'a> Tree<'a> {
    fn of(recording: &'a Recording) -> Tree<'a> {
        let mut tree = Tree {
            files: IndexSet::new(),
            functions: IndexSet::new(),
            nodes: IndexSet::new(),
            of_stack: Vec::with_capacity(recording.stacks.len()),
        };
        // The root precedes all other nodes and differs from them.
        let root = tree.function("", "", Origin::Unknown);
        tree.node(Node { parent: 0, function: root, line: 0, is_inlined: false });
        // A stack's parent precedes it.
        for (index, stack) in recording.stacks.iter().enumerate() {
            let node = if index == 0 {
                0
            } else {
                let parent = tree.of_stack[stack.parent as usize];
                tree.add(recording, stack.frame as usize, parent)
            };
            tree.of_stack.push(node);
        }
        tree
    }

    /// Adds the functions at an address below `parent`; returns the innermost.
    fn add(&mut self, recording: &'a Recording, frame: usize, parent: u32) -> u32 {
        let address = recording.frames[frame];
        let Some(functions) =
            recording.symbols.get(frame).filter(|functions| !functions.is_empty())
        else {
            return self.add_unknown(recording, &address, parent);
        };
        // Functions are listed innermost first; all but the outermost are inlined.
        let mut node = parent;
        for (depth, Function { name, file, line }) in functions.iter().enumerate().rev() {
            let origin = origin::of(name, file, address.is_kernel);
            let function = self.function(name, file, origin);
            node = self.node(Node {
                parent: node,
                function,
                line: *line,
                is_inlined: depth + 1 < functions.len(),
            });
        }
        node
    }

    /// Adds an address without a name: the module stands for the function.
    fn add_unknown(&mut self, recording: &'a Recording, frame: &Frame, parent: u32) -> u32 {
        let mut modules = recording.facts.modules.iter();
        let module = modules.find(|module| module.contains(frame.address));
        let name = match (frame.is_kernel, module) {
            (true, _) => "[kernel]",
            (false, Some(module)) => module.path.rsplit('/').next().unwrap_or_default(),
            (false, None) => "[unknown]",
        };
        let origin = if frame.is_kernel { Origin::Kernel } else { Origin::Unknown };
        let function = self.function(name, "", origin);
        self.node(Node { parent, function, line: 0, is_inlined: false })
    }

    fn function(&mut self, name: &'a str, file: &'a str, origin: Origin) -> u32 {
        let file = self.files.insert_full(file).0 as u32;
        self.functions.insert_full(PageFunction { name, file, origin }).0 as u32
    }

    fn node(&mut self, node: Node) -> u32 {
        self.nodes.insert_full(node).0 as u32
    }

    fn columns(&self, columns: &mut Columns) {
        let functions = &self.functions;
        columns.add("function.file".to_owned(), functions.iter().map(|f| f.file.into()));
        columns.add("function.origin".to_owned(), functions.iter().map(|f| f.origin as u64));
        let nodes = &self.nodes;
        // Distances to parents are small numbers where a stack was new as a whole.
        let distances =
            nodes.iter().enumerate().map(|(index, node)| index as u64 - u64::from(node.parent));
        columns.add("node.distance".to_owned(), distances);
        columns.add("node.function".to_owned(), nodes.iter().map(|node| node.function.into()));
        columns.add("node.line".to_owned(), nodes.iter().map(|node| node.line.into()));
        columns.add("node.inlined".to_owned(), nodes.iter().map(|node| node.is_inlined.into()));
    }
}
