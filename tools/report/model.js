/* From the lines of a recording to what is drawn. One clock: microseconds since the job's first allocation, or, for a
   trace, the number of the call. */
let unreadable = 0;
const lines = document.querySelector(".recording").textContent.split("\n").filter(Boolean).flatMap((line, i, all) => {
  try { return [JSON.parse(line)]; } catch { unreadable += i + 1 < all.length; return []; } /* the last may be cut off */
});
/* Lines that can be read may be wrong all the same. */
addEventListener("error", ({message}) => document.getElementById("about").after(
  Object.assign(document.createElement("p"), {className: "bad", textContent: `The recording is damaged, and not all of it is shown (${message}).`})), {once: true});
const start = lines[0], ofType = type => lines.filter(line => line.type === type);
const byCalls = start.clock === "calls", samples = ofType("sample"), end = ofType("end")[0];
const LATELY = 4096, ALL_POOLS = 63;

/* Blocks of one pool, as columns: when, until, where, how much was asked for and taken, name, site (0: not known) and how
   many blocks it stands for. `order` has their begins (index + 1) and ends (-index - 1) as they came, `orderAt` when. */
class Blocks {
  constructor() {
    for (const column of ["from", "to", "address", "bytes", "size", "name", "site", "weight", "order", "orderAt"]) this[column] = [];
    this.held = new Map();
  }
  get count() { return this.from.length; }
  begin(at, address, bytes, size, name, site, weight) {
    this.finish(at, address);
    this.held.set(address, this.count);
    this.from.push(at); this.to.push(Infinity); this.address.push(address); this.bytes.push(bytes); this.size.push(size); this.name.push(name);
    this.site.push(site); this.weight.push(weight); this.order.push(this.count); this.orderAt.push(at);
  }
  finish(at, address) {
    const i = this.held.get(address);
    if (i === undefined) return -1;
    this.held.delete(address);
    this.to[i] = at;
    this.order.push(-i - 1); this.orderAt.push(at);
    return i;
  }
  /* Those that are there at a moment, after its call. */
  at(moment) {
    const found = [];
    for (let i = 0; i < this.count; i++)
      if (this.from[i] <= moment && moment < this.to[i]) found.push(i);
    return found;
  }
}

/* All that is known of one pool; series: when, bytes asked for, bytes reserved, after each call. */
const newPool = () => ({blocks: new Blocks(), regions: new Blocks(), calls: [], failures: [], unknownFrees: 0,
  at: [], live: [], reserved: [], allocations: 0, frees: 0, peak: 0, peakAt: 0, peakReserved: 0});

const step = (pool, live, reserved, at) => {
  pool.at.push(at); pool.live.push(live); pool.reserved.push(reserved);
  if (live > pool.peak) { pool.peak = live; pool.peakAt = at; }
  if (reserved > pool.peakReserved) pool.peakReserved = reserved;
};

const GRANULE = 512;
const take = (pool, [kind, at, , address, bytes, name, size, site, weight]) => {
  let live = pool.live.length ? pool.live[pool.live.length - 1] : 0;
  let reserved = pool.reserved.length ? pool.reserved[pool.reserved.length - 1] : 0;
  if (kind === "a") {
    /* Its free was not seen, if there is still one there. */
    const before = pool.blocks.finish(at, address);
    if (before >= 0) live -= pool.blocks.bytes[before];
    pool.blocks.begin(at, address, bytes, size || Math.ceil(bytes / GRANULE) * GRANULE, name, site || 0, weight || 1);
    pool.allocations++; live += bytes;
  }
  if (kind === "f") {
    const i = pool.blocks.finish(at, address);
    pool.frees++;
    if (i < 0) pool.unknownFrees++; else { bytes = pool.blocks.bytes[i]; live -= bytes; }
  }
  /* Without an address it is a page, which moves. */
  if (kind === "g") { if (address) pool.regions.begin(at, address, bytes, bytes, 0); reserved += bytes; }
  if (kind === "r") { if (address) pool.regions.finish(at, address); reserved -= bytes; }
  pool.calls.push({kind, at, address, bytes, name});
  if (kind === "o" || kind === "O") pool.failures.push({at, bytes, recorded: kind === "O", call: pool.calls.length - 1});
  step(pool, live, reserved, at);
};

const pools = new Map();
const poolOf = number => { if (!pools.has(number)) pools.set(number, newPool()); return pools.get(number); };
/* A job's threads look at the kernel's coarse clock, and not at every call: times are made to rise, and calls of the
   same time are put evenly apart, up to the next time or a tick of that clock later. */
const TICK_US = 4000;
const spread = calls => {
  for (let i = 1; i < calls.length; i++) calls[i][1] = Math.max(calls[i][1], calls[i - 1][1]);
  for (let i = 0, next; i < calls.length; i = next) {
    const time = calls[i][1];
    for (next = i; next < calls.length && calls[next][1] === time; next++);
    const length = Math.min(next < calls.length ? calls[next][1] - time : TICK_US, TICK_US);
    for (let k = i; k < next; k++) calls[k][1] += length * (k - i) / (next - i);
  }
};
const allCalls = ofType("calls").flatMap(line => line.calls);
if (!byCalls) spread(allCalls);
for (const call of allCalls) if (call[2] !== ALL_POOLS) take(poolOf(call[2]), call);
const lostCalls = ofType("calls").reduce((most, line) => Math.max(most, line.lost), 0);

/* What samples say; without the job's clock in them (an older recording) the recorder's is all there is. */
const sampleAt = sample => sample.us ?? sample.seconds * 1e6;
/* The recorder writes the calls until a sample before it: `calls` is how many. */
const callsSoFar = new Map();
for (const line of lines) {
  for (const [, , number] of line.type === "calls" ? line.calls : []) callsSoFar.set(number, (callsSoFar.get(number) || 0) + 1);
  for (const p of line.type === "sample" ? line.pools : []) (poolOf(p.pool).samples ||= []).push({at: sampleAt(line), calls: callsSoFar.get(p.pool) || 0, ...p});
}
const maps = ofType("map").map(line => ({at: sampleAt(line), map: line.map}));
const landmarks = samples.flatMap(sample => sample.landmarks);
const before = ofType("events").filter(line => line.of);
const begun = byCalls ? 0 : samples.length ? sampleAt(samples[0]) : 0;
const withCalls = [...pools.values()].filter(p => p.calls.length);
const firstCallAt = Math.min(begun, ...withCalls.map(p => p.calls[0].at));
const lastAt = byCalls ? end?.at ?? 1 : Math.max(begun, ...samples.map(sampleAt), ...ofType("who").map(line => line.us), firstCallAt + 1,
  ...withCalls.map(p => p.at[p.at.length - 1]));
/* The ring of events may reach back by days: so far as the recording is long, and no further. */
const firstAt = byCalls ? 0 : samples.length > 1 ? Math.max(firstCallAt, 2 * begun - lastAt) : firstCallAt;

/* Failures of the job in the recording, by its landmarks; those before it are counted only. */
const failuresOf = number => {
  if (byCalls) return poolOf(number).failures;
  const all = landmarks.filter(e => e.kind === "out_of_memory" && e.pool === number);
  return all.filter(e => e.us >= firstAt).map(e => ({at: e.us, bytes: e.bytes,
    line: before.find(line => line.of[0].number === e.number)}));
};
const failuresBefore = number => byCalls ? 0 :
  landmarks.filter(e => e.kind === "out_of_memory" && e.pool === number && e.us < firstAt).length;

/* The last item whose `at` is not after the moment; items come in order. */
const lastUntil = (items, moment) => {
  let low = 0, high = items.length;
  while (low < high) { const middle = (low + high) >> 1; if (items[middle].at <= moment) low = middle + 1; else high = middle; }
  return items[low - 1];
};

/* Address space at a moment: regions in order, and what is in them as pieces with the share in use and pending. */
const spaceFromCalls = (pool, moment) => {
  const byAddress = blocks => (a, b) => blocks.address[a] - blocks.address[b];
  const regions = pool.regions.at(moment).sort(byAddress(pool.regions));
  const live = pool.blocks.at(moment).sort(byAddress(pool.blocks));
  return {exact: true, leftOut: 0, at: moment,
    regions: regions.map(i => ({start: pool.regions.address[i], size: pool.regions.bytes[i]})),
    pieces: live.map(i => ({start: pool.blocks.address[i], size: pool.blocks.size[i], used: 1, pending: 0, block: i}))};
};
const spaceFromMap = (number, moment) => {
  const found = lastUntil(maps, moment) || maps[0];
  if (!found) return null;
  const rows = found.map.rows.filter(row => row.pool === number).sort((a, b) => a.start - b.start), pieces = [];
  for (const row of rows)
    for (let i = 0; 2 * i < row.cells.length; i++) {
      const start = row.start + i * row.cell_bytes, bare = row.cells.slice(2 * i, 2 * i + 2) === "ff";
      const size = Math.min(row.cell_bytes, row.start + row.size - start);
      pieces.push({start, size, bare, used: bare ? 0 : parseInt(row.cells[2 * i], 16) / 15,
        pending: bare ? 0 : parseInt(row.cells[2 * i + 1], 16) / 15});
    }
  return {exact: false, leftOut: found.map.left_out, at: found.at, pieces,
    regions: rows.map(row => ({start: row.start, size: row.size}))};
};
/* A job that is reported on as it is now tells all its blocks: states 0 in use, 2 pending, 3 without a page. */
const toldSpace = ofType("space")[0];
const spaceFromJob = number => {
  const byStart = (a, b) => a.start - b.start;
  const regions = toldSpace.regions.filter(([, , pool]) => pool === number).map(([start, size]) => ({at: start, start, size})).sort(byStart);
  const within = address => { const last = lastUntil(regions, address); return last && address < last.start + last.size; };
  const pieces = toldSpace.blocks.filter(([start]) => within(start)).map(([start, size, state]) => ({start, size, used: +(state === 0), pending: +(state === 2), bare: state === 3})).sort(byStart);
  for (const piece of pieces) {  // as bfcstat's map: the addresses that pages have not reached yet are many times the memory
    const region = lastUntil(regions, piece.start);
    if (piece.bare && piece.start + piece.size >= region.start + region.size) region.size = piece.start - region.start;
  }
  return {exact: true, at: toldSpace.us, leftOut: 0, regions: regions.filter(region => region.size), pieces: pieces.filter(piece => within(piece.start))};
};
const spaceAt = (number, moment) => byCalls ? spaceFromCalls(poolOf(number), moment) : toldSpace ? spaceFromJob(number) : spaceFromMap(number, moment);

/* The largest allocation among the last calls before a moment. */
const largestRequest = (pool, moment) => {
  let largest = 0, seen = 0;
  for (let i = pool.calls.length - 1; i >= 0 && seen < LATELY; i--) {
    const call = pool.calls[i];
    if (call.at > moment) continue;
    seen++;
    if (call.kind === "a") largest = Math.max(largest, call.bytes);
  }
  return largest;
};

/* Free pieces of an exact space: sizes between blocks, region by region. */
const holesOf = space => {
  const holes = [];
  let i = 0;
  for (const region of space.regions) {
    let at = region.start;
    const over = region.start + region.size;
    for (; i < space.pieces.length && space.pieces[i].start < over; i++) {
      const piece = space.pieces[i];
      if (piece.start < region.start) continue;
      if (piece.start > at) holes.push(piece.start - at);
      at = piece.start + piece.size;
    }
    if (over > at) holes.push(over - at);
  }
  return holes;
};
const sum = numbers => numbers.reduce((a, b) => a + b, 0);
