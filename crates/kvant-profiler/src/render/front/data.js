// The decoded recording: columns of numbers and tables of names. Independent of how it is drawn.

// The views of a page. The weight of `cpu` is CPU time, that of `alloc` bytes, that of the others
// time waited; times are in nanoseconds. `means` explains a large number.
export const VIEWS = [
  { id: 'cpu', kind: 'cpu', unit: 'time', title: 'CPU', what: 'CPU time', rate: 'CPUs busy', means: 'this code ran' },
  { id: 'alloc', kind: 'alloc', unit: 'bytes', title: 'Allocations', what: 'bytes allocated',
    means: 'this code requested memory, whether or not it was freed' },
  { id: 'live', kind: 'alloc', unit: 'bytes', title: 'Live bytes', what: 'bytes allocated and not freed before the end', isLive: true,
    means: 'of that memory, what was not freed before the end of the recording' },
  { id: 'contention', kind: 'contention', unit: 'time', title: 'Contention', what: 'time waited for locks', rate: 'threads waiting',
    means: 'threads waited for a lock that another thread held' },
  { id: 'holder', kind: 'holder', unit: 'time', title: 'Holders', what: 'time others waited for a lock, by its holder', rate: 'locks wanted',
    means: 'this code held a lock while others waited: usually the place to change' },
  { id: 'backpressure', kind: 'backpressure', unit: 'time', title: 'Backpressure', what: 'time waited for a slower stage', rate: 'threads waiting',
    means: 'a slower stage had to catch up first: a full queue, a write stall' },
  { id: 'io', kind: 'io', unit: 'time', title: 'I/O', what: 'time waited for the disk', rate: 'threads waiting',
    means: 'file system calls that took 0.1 ms or more' },
  { id: 'idle', kind: 'idle', unit: 'time', title: 'Idle', what: 'time without work', rate: 'threads idle',
    means: 'there was no work; large in a healthy server' },
  { id: 'scheduler', kind: 'scheduler', unit: 'time', title: 'Scheduler', what: 'time ready to run without a processor', rate: 'threads waiting',
    means: 'ready to run, but no processor was free; without stacks' },
];

// Origins of code, in the order of their numbers in the data. The last two are no code: threads and
// activities; locks.
export const ORIGINS = ['own', 'library', 'kernel', 'native', 'unknown', 'group', 'waited'];
export const OWN = 0;
export const UNKNOWN = 4;
export const GROUP = 5;
export const WAITED = 6;

// The name for CPU time of the process that no sample accounts for.
export const NOT_SAMPLED = '[not sampled]';

// Gives each function of all recordings of a page one id, so that trees of two recordings can be
// compared.
export class Frames {
  constructor() {
    this.names = [];
    this.files = [];
    this.origins = [];
    this.ids = new Map();
  }

  intern(name, file, origin) {
    const key = origin + name;
    let id = this.ids.get(key);
    if (id === undefined) {
      id = this.names.length;
      this.ids.set(key, id);
      this.names.push(name);
      this.files.push(file);
      this.origins.push(origin);
    }
    return id;
  }
}

// The bytes of base64 of zlib.
export async function unpack(base64) {
  const letters = atob(base64);
  const packed = new Uint8Array(letters.length);
  for (let at = 0; at < packed.length; at += 1) {
    packed[at] = letters.charCodeAt(at);
  }
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Decodes the output of `front/data.rs`: the length of a JSON text, the text, and columns of LEB128
// numbers.
export async function decodeRecording(base64, frames) {
  const bytes = await unpack(base64);
  const jsonLength = new DataView(bytes.buffer).getUint32(0, true);
  const meta = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + jsonLength)));
  const columns = {};
  let at = 4 + jsonLength;
  for (const [name, count, length] of meta.columns) {
    columns[name] = numbers(bytes.subarray(at, at + length), count);
    at += length;
  }
  return new Recording(meta, columns, frames);
}

// LEB128: seven bits a byte, low bits first; the high bit means that more follow.
function numbers(bytes, count) {
  const values = new Float64Array(count);
  let at = 0;
  for (let index = 0; index < count; index += 1) {
    let value = 0;
    let factor = 1;
    let byte;
    do {
      byte = bytes[at];
      at += 1;
      value += (byte & 127) * factor;
      factor *= 128;
    } while (byte > 127);
    values[index] = value;
  }
  return values;
}

export class Recording {
  constructor(meta, columns, frames) {
    this.facts = meta.facts;
    this.threads = meta.threads;
    this.names = meta.names;
    this.activities = meta.activities;
    this.stages = meta.stages;
    this.durationUs = meta.durationUs;
    this.spans = meta.spans.map(({ kind, startNs, endNs, fields }) => ({ kind, fields, startUs: Math.floor(startNs / 1e3),
      endUs: endNs === null ? meta.durationUs : Math.floor(endNs / 1e3), isOpen: endNs === null }));
    this.notSampledNs = meta.notSampledNs;
    this.blindSpot = meta.blindSpot;
    this.sampleCount = meta.sampleCount;
    this.hasSymbols = meta.hasSymbols;
    const functions = meta.functions.map((name, index) =>
      frames.intern(name, meta.files[columns['function.file'][index]], columns['function.origin'][index]));
    // The call tree; node 0 is the root, which has no frame.
    this.nodes = {
      parent: Uint32Array.from(columns['node.distance'], (distance, index) => index - distance),
      frame: Uint32Array.from(columns['node.function'], (number) => functions[number]),
      line: Uint32Array.from(columns['node.line']),
      isInlined: Uint8Array.from(columns['node.inlined']),
    };
    this.samples = {};
    for (const kind of meta.kinds) {
      this.samples[kind] = samplesOf(kind, columns);
    }
  }

  // CPU time without samples has no timestamp: it belongs only to the whole recording.
  notSampled(view, fromUs, toUs) {
    return view.id === 'cpu' && fromUs <= 0 && toUs >= this.durationUs ? this.notSampledNs : 0;
  }

  // Whether a view has samples. Those of live bytes are a part of the allocations.
  has(view) {
    const samples = this.samples[view.kind];
    return samples !== undefined && (!view.isLive || samples.live.includes(1));
  }
}

function samplesOf(kind, columns) {
  const column = (name) => columns[`${kind}.${name}`];
  const startUs = column('gap_us');
  for (let index = 1; index < startUs.length; index += 1) {
    startUs[index] += startUs[index - 1];
  }
  return {
    count: startUs.length,
    startUs,
    endUs: column('duration_us').map((duration, index) => startUs[index] + duration),
    thread: column('thread'),
    activity: column('activity'),
    stage: column('stage'),
    name: column('name'),
    node: column('node'),
    weight: column('weight'),
    live: column('live'),
  };
}

// Calls `take(sample's index, weight)` for the view's samples in [fromUs, toUs). Of a wait the
// overlapping part counts.
export function eachSample(recording, view, fromUs, toUs, take) {
  const samples = recording.samples[view.kind];
  if (samples === undefined) {
    return;
  }
  const { count, startUs, endUs, weight, live } = samples;
  for (let index = 0; index < count; index += 1) {
    const start = startUs[index];
    if (start >= toUs) {
      break;
    }
    const end = endUs[index];
    if ((view.isLive && live[index] === 0) || (end > start ? end <= fromUs : start < fromUs)) {
      continue;
    }
    const part = end > start ? (Math.min(end, toUs) - Math.max(start, fromUs)) / (end - start) : 1;
    take(index, weight[index] * part);
  }
}

// The frames above a stack when samples are grouped.
export function framesAbove(frames, recording, samples, index, roots) {
  if (roots === 'thread') {
    const { id, name } = recording.threads[samples.thread[index]];
    return [frames.intern(`${name} (${id})`, '', GROUP)];
  }
  if (roots === 'activity') {
    const activity = frames.intern(recording.activities[samples.activity[index]], '', GROUP);
    const stage = recording.stages[samples.stage[index]];
    return stage === 'none' ? [activity] : [activity, frames.intern(stage, '', GROUP)];
  }
  return [];
}

// For each node of the recording's tree, whether it or one of its callers matches.
export function matchingNodes(recording, isFrameMatching) {
  const { parent, frame } = recording.nodes;
  const matches = new Uint8Array(parent.length);
  for (let node = 1; node < parent.length; node += 1) {
    matches[node] = matches[parent[node]] || (isFrameMatching(frame[node]) ? 1 : 0);
  }
  return matches;
}
