/* What the page shows of one pool. */
const main = document.getElementById("main");
const section = (title, note) => {
  main.append(element("h2", {}, title));
  if (note) main.append(element("p", {class: "faint"}, note));
  const body = element("div", {class: "scroll"});
  main.append(body);
  return body;
};
const addKey = (body, entries) => body.append(element("div", {class: "key"}, ...entries.map(([name, colour]) =>
  element("span", {}, element("i", {style: `background:var(--${colour})`}), name))));
const cell = (text, kind = "n") => element("td", {class: kind}, text);
const table = (heads, rows) => element("table", {class: heads.length > 5 ? "wide" : ""}, element("tr", {}, ...heads.map(([name, kind]) => element("th", {class: kind || "n"}, name))), ...rows);
let shown = 0; /* the pool */

/* ---- the memory chart ---- */

/* What calls cannot tell: the sizes of blocks whose allocation is not among them. */
const unseen = lostCalls ? "whose allocation was not seen here" : "allocated before the first call seen here";
const unknownWords = pool => pool.unknownFrees ? ` ${many(pool.unknownFrees, "block")} ${unseen}, and freed since, ${pool.unknownFrees === 1 ? "is" : "are"} not in it.` : "";
const lostWords = lostCalls ? ` Up to ${many(lostCalls, "event")} were overwritten before they were seen: blocks may be missing, or be drawn beyond their free, until their address comes again.` : "";

/* Bytes, padding included, of a job's blocks whose allocation is not among its calls; undefined where it told none. */
const toldBefore = pool => {
  if (!toldSpace || toldSpace.left_out) return undefined;
  const seen = new Set(pool.blocks.address), number = [...pools].find(([, one]) => one === pool)[0];
  return sum(spaceFromJob(number).pieces.filter(piece => piece.used && !seen.has(piece.start)).map(piece => piece.size));
};
/* Calls tell differences: what was there before them follows from the samples behind them, of which the middle one counts. Of
   one sample it is no more than what the job's blocks tell, and no less but for padding: a job does not stand still between its
   counters and its calls. */
const middle = numbers => numbers.sort((a, b) => a - b)[numbers.length >> 1];
const findBase = pool => {
  const seen = (pool.samples ?? []).map(p => ({...p, reserved: p.reserved - (p.asleep ?? 0)})), last = pool.at.length - 1;
  if (byCalls || !seen.length || last < 0) return {live: 0, reserved: 0};
  const behind = toldSpace ? [] : seen.filter(p => p.calls), [sample] = seen.slice(-1);
  const less = (figure, calls) => middle(behind.map(p => p[figure] - calls[p.calls - 1]));
  if (behind.length) return {live: Math.max(0, less("requested", pool.live)), reserved: Math.max(0, less("reserved", pool.reserved))};
  const told = toldBefore(pool), follows = Math.max(0, sample.requested - pool.live[last]), padding = sample.in_use - sample.requested;
  return {live: told === undefined ? follows : Math.max(0, told - padding, Math.min(told, follows)), reserved: Math.max(0, sample.reserved - pool.reserved[last])};
};
const baseOf = pool => pool.base ||= findBase(pool);
/* What was there before the first call is drawn from the first sample on; what the last call left stays until the end, when
   other pools may have had calls. */
const callsData = pool => {
  const base = baseOf(pool), begin = pool.samples?.[0]?.at, end = pool.at.length - 1, x = pool.at.map(toAxis);
  const reserved = pool.reserved.map(n => n + base.reserved), live = pool.live.map(n => n + base.live);
  if (begin < pool.at[0]) { x.unshift(toAxis(begin)); reserved.unshift(base.reserved); live.unshift(base.live); }
  if (pool.at[end] < lastAt) { x.push(toAxis(lastAt)); reserved.push(reserved.at(-1)); live.push(live.at(-1)); }
  return [x, reserved, live];
};
/* Memory that is asleep is reserved, and not on the device. */
const asleepWords = sample => sample.asleep ? `, of it ${bytes(sample.asleep)} asleep` : "";
const curve = (label, colour) => ({label, stroke: () => css(colour), width: 1.6, points: {show: false}, paths: uPlot.paths.stepped({align: 1}),
  value: (u, v) => v === null ? "–" : bytes(v)});

const addLayers = (body, label, layers, most, failures, height = 260) => addChart(body, label, [[toAxis(firstAt), toAxis(lastAt)], ...layers.map(() => [0, 0])],
  layers.map(({data, colour, label: name}) => ({label: name, stroke: () => css(colour), fill: () => css(colour), points: {show: false}, paths: () => null,
    value: chart => columnWords(chart, data)})),
  {height, failures, draw: [asPicture(chart => paintLayers(chart, layers))], y: {range: () => [0, most * 1.04]}});

/* Of a job as it is now, one sample and its last events: a thread that seldom calls has numbers of events that are too low. */
const memoryWords = (pool, byEvery) => {
  if (!byEvery) return "By samples: what lay between two of them shows in the peaks above alone; bfcstat record --events tells every call.";
  if (byCalls) return "Exact: every call counts.";
  return pool.samples?.length > 1 ? "By every call that was recorded." : "By the last calls; those of several threads may be out of order.";
};
const showMemory = (pool, failures) => {
  const byEvery = pool.calls.length > 0, seen = pool.samples ?? [];
  const body = section("Memory over time", memoryWords(pool, byEvery) + " A column of pixels is filled up to its least, and light up to its most." +
    ` Dashed: an allocation failed.${byEvery ? unknownWords(pool) + lostWords : ""}`);
  const at = seen.map(p => toAxis(p.at)), bySample = (figure, colour, label, line) => ({data: [at, seen.map(figure)], colour, label, line});
  const [x, reserved, live] = callsData(pool);
  const layers = byEvery ? [{data: [x, reserved], colour: "ready", label: "reserved"}, {data: [x, live], colour: "use", label: "asked for by live blocks"}]
    : [bySample(p => p.reserved, "ready", "reserved: ready above"), bySample(p => p.in_use + p.pending + p.deferred, "pending", "in use, pending and deferred"),
      bySample(p => p.in_use, "use", "in use"), bySample(p => p.requested, "requested", "asked for", true)];
  if (!layers[0].data[0].length) { body.append("Nothing was recorded."); return; }
  const most = layers.reduce((so, {data: [, figures]}) => figures.reduce((a, b) => Math.max(a, b), so), 1);
  view.ownMost = Math.max(view.ownMost, most);
  addLayers(body, "memory over time", layers, Math.max(most, view.commonMost), failures);
  const asleep = bySample(p => p.asleep ?? 0, "hole", "asleep, by samples");
  if (asleep.data[1].some(Boolean)) addLayers(body, "asleep", [asleep], Math.max(...asleep.data[1]), failures, 150);
  const waits = bySample(p => p.pending + p.deferred, "pending", "pending and deferred, by samples");
  if (byEvery && seen.length > 1 && waits.data[1].some(Boolean)) addLayers(body, "pending and deferred", [waits], Math.max(...waits.data[1]), failures, 150);
};

const showFragmentation = (pool, failures) => {
  if (byCalls || (pool.samples?.length ?? 0) < 2) return;
  const body = section("Fragmentation", "The share of the ready bytes that cannot serve the largest request among the job's last 4,096 events, since they lie in smaller blocks; 0 with nothing in use. Below it the largest free block.");
  const seen = pool.samples, x = seen.map(p => toAxis(p.at)), percent = seen.map(p => p.fragmentation ?? null);
  const chart = addChart(body, "fragmentation", [x, percent], [{...curve("fragmentation", "bad"), value: (u, v) => share(v)}],
    {height: 150, failures, y: {range: [0, 1]}});
  chart.axes[1].incrs = () => [0.25, 0.5, 1];
  chart.axes[1].values = (u, ticks) => ticks.map(t => t * 100 + " %");
  const free = seen.map(p => p.largest_free), asked = seen.map(p => p.largest_request ?? null);
  addChart(body, "largest free block", [x, free, asked], [curve("largest free block", "use"), curve("largest request lately", "requested")],
    {height: 150, failures, y: {range: [0, Math.max(1, ...free, ...asked) * 1.04]}});
};

/* ---- every block ---- */

/* Regions that ever were, one above another; those that overlap, since addresses came again, are one. */
const layoutOf = (number, pool) => {
  const all = pool.regions.address.map((start, i) => ({start, size: pool.regions.bytes[i]}));
  for (const {map} of maps) for (const row of map.rows) if (row.pool === number) all.push(row);
  const layout = [];
  let height = 0;
  for (const {start, size} of all.sort((a, b) => a.start - b.start)) {
    const last = layout[layout.length - 1];
    if (last && start < last.start + last.size) {
      const more = Math.max(0, start + size - last.start - last.size);
      last.size += more; height += more;
    } else { layout.push({start, size, offset: height}); height += size; }
  }
  const offset = address => {
    let low = 0, high = layout.length;
    while (low < high) { const middle = (low + high) >> 1; if (layout[middle].start <= address) low = middle + 1; else high = middle; }
    const region = layout[low - 1];
    return region && address < region.start + region.size ? region.offset + address - region.start : -1;
  };
  return {layout, height: height || 1, offset};
};

const PALETTE = ["#4e79a7", "#f28e2b", "#59a14f", "#b07aa1", "#76b7b2", "#e15759", "#9c755f", "#edc948"];

/* What is smaller than a pixel is added up in a grid of pixels, so that its area is right. */
const paintBlocks = (chart, blocks, low) => {
  const {from, to, size} = blocks;
  const {min: x0, max: x1} = chart.scales.x, {min: y0, max: y1} = chart.scales.y;
  const {picture, pen, wide, tall} = newPicture(chart), grid = new Float32Array(wide * tall);
  const xScale = wide / (x1 - x0), yScale = tall / (y1 - y0), last = toAxis(lastAt);
  const add = (left, right, top, bottom, strength) => {
    for (let row = Math.floor(top); row < bottom; row++)
      for (let column = Math.floor(left); column < right; column++)
        grid[row * wide + column] += strength * (Math.min(right, column + 1) - Math.max(left, column)) * (Math.min(bottom, row + 1) - Math.max(top, row));
  };
  for (let i = 0; i < from.length; i++) {
    if (low[i] < 0) continue;
    const left = Math.max(0, (toAxis(from[i]) - x0) * xScale), right = Math.min(wide, ((to[i] === Infinity ? last : toAxis(to[i])) - x0) * xScale);
    const bottom = Math.min(tall, tall - (low[i] - y0) * yScale), top = Math.max(0, tall - (low[i] + size[i] - y0) * yScale);
    if (right <= left || bottom <= top) continue;
    if (right - left < 1 || bottom - top < 1) add(left, right, top, bottom, strengthOf(blocks, i));
    else {
      const [red, green, blue] = colourOf(blocks, i);
      pen.fillStyle = `rgba(${red},${green},${blue},${strengthOf(blocks, i)})`;
      pen.fillRect(left, top, right - left, bottom - top);
    }
  }
  const {picture: small, pen: smallPen} = newPicture(chart), image = smallPen.createImageData(wide, tall);
  for (let i = 0; i < grid.length; i++)
    if (grid[i]) { image.data[4 * i] = 0x4e; image.data[4 * i + 1] = 0x79; image.data[4 * i + 2] = 0xa7; image.data[4 * i + 3] = 255 * Math.min(1, grid[i]); }
  smallPen.putImageData(image, 0, 0);
  pen.drawImage(small, 0, 0);
  return picture;
};

/* When there were which regions; of a recording by its maps, and by their own events where those were seen. */
const regionSpans = (number, pool, place) => {
  const {address, bytes, from, to} = pool.regions;
  if (byCalls) return address.map((start, i) => ({start, size: bytes[i], from: from[i], to: Math.min(to[i], lastAt)}));
  if (!maps.length) return place.layout.map(region => ({...region, from: firstAt, to: lastAt}));
  const spans = [], last = new Map();
  maps.forEach(({at, map}, k) => {
    const before = k ? maps[k - 1].at : -Infinity, to = maps[k + 1]?.at ?? lastAt;
    for (const {start, size, pool: of} of map.rows) {
      if (of !== number) continue;
      const name = `${start} ${size}`, known = last.get(name);
      if (known?.map === k - 1) { known.map = k; known.to = to; continue; }
      const grown = address.findLastIndex((region, i) => region === start && from[i] > before && from[i] <= at);
      last.set(name, {start, size, map: k, from: grown >= 0 ? from[grown] : k ? at : firstAt, to});
      spans.push(last.get(name));
    }
  });
  return spans;
};

const drawRegions = (chart, spans, place) => {
  const {ctx, bbox} = chart;
  ctx.save();
  ctx.fillStyle = css("hole"); ctx.strokeStyle = css("line");
  ctx.beginPath(); ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height); ctx.clip();
  for (const {start, size, from, to} of spans) {
    const low = place.offset(start), left = chart.valToPos(toAxis(from), "x", true), right = chart.valToPos(toAxis(to), "x", true);
    const top = chart.valToPos(low + size, "y", true), bottom = chart.valToPos(low, "y", true);
    ctx.fillRect(left, top, right - left, bottom - top);
    if (bottom - top > 3) ctx.strokeRect(left, top, right - left, bottom - top);
  }
  ctx.restore();
};

const stackText = (site, most) => {
  if (!site) return hasStacks ? ["its stack was not taken"] : [];
  const frames = stackLines(site), tag = sites[site].tag;
  return [`by ${GROUPS.library(site)}${tag ? ", " + tag : ""}`, ...frames.slice(0, most).map(line => "  " + line), ...(frames.length > most ? [`  and ${many(frames.length - most, "frame")} more: click`] : [])];
};

/* A trace numbers its allocations, a CSV its rows, from 0. */
const nameOfBlock = (pool, i) => byCalls ? `${start.names} ${pool.blocks.name[i]}` : "";
const blockText = (pool, i, most = 14) => [
  (byCalls ? nameOfBlock(pool, i) + ": " : "") + `${bytes(pool.blocks.bytes[i])} (${count(pool.blocks.bytes[i])} bytes)`,
  `from ${when(pool.blocks.from[i])}, ${pool.blocks.to[i] === Infinity ? "not freed" : "for " + stretch(pool.blocks.to[i] - pool.blocks.from[i])}`,
  `at ${hex(pool.blocks.address[i])}`, ...stackText(pool.blocks.site[i], most)].join("\n");

const addTip = (holder, chart, textAt) => {
  const tip = element("div", {class: "tip", hidden: ""});
  holder.append(tip);
  chart.over.addEventListener("mousemove", event => showTip(tip, textAt(chart.posToVal(chart.cursor.left, "x"), chart.posToVal(chart.cursor.top, "y")), event));
  chart.over.addEventListener("mouseleave", () => { tip.hidden = true; });
};

const clockWords = " Calls of several threads are in an order in which they can have come; those between two ticks of the kernel's clock, some 4 ms, are drawn evenly apart." +
  (toldSpace ? " A thread looks at the clock once in 8 of its calls: what one that seldom calls did after that is drawn too early." : "");

const showBlocks = (number, pool, failures) => {
  if (!pool.blocks.count) {
    const body = section("Every block");
    body.append("Calls were not recorded: ", element("code", {}, "bfcstat record --events"), " or ", element("code", {}, "BFC_RECORD"), " do.");
    return;
  }
  const place = layoutOf(number, pool), spans = regionSpans(number, pool, place), {from, to, size, address} = pool.blocks, low = address.map(place.offset);
  const outside = low.filter(offset => offset < 0).length, base = baseOf(pool).live;
  const wentBack = sum(spans.filter(span => span.to >= lastAt).map(span => span.size)) < place.height;
  const body = section("Every block, at its address", `${many(pool.blocks.count, "block")}, each from its allocation to its free, at its address; ` +
    `regions one above another in the order of their addresses, ${bytes(place.height)} in all${wentBack ? ", those included that were given back" : ""}, as high as they are large. ` +
    `What is smaller than a pixel is added up, never left out. Grey: reserved, not in use${byCalls || toldSpace ? "" : ", by maps of every half second"}.` +
    (base ? ` Not drawn: ${bytes(base)} ${unseen} and still held.` : "") + unknownWords(pool) +
    (outside ? ` Not drawn: ${many(outside, "block")} in regions that are not known.` : "") + lostWords + (byCalls ? "" : clockWords));
  view.ownMost = Math.max(view.ownMost, place.height);
  const whole = [0, Math.max(place.height, view.commonMost)], band = {range: whole};
  const chart = addChart(body, "every block", [[toAxis(firstAt), toAxis(lastAt)], [0, 0]], [{show: true, label: "address", width: 0, points: {show: false}}],
    {height: 420, failures, legend: false, onlyX: false, y: {range: () => band.range},
     draw: [u => drawRegions(u, spans, place), asPicture(u => paintBlocks(u, pool.blocks, low))]});
  chart.onBand = (least, most) => { band.range = least === undefined ? whole : [Math.max(0, least), Math.min(whole[1], most)];
    chart.setScale("y", {min: band.range[0], max: band.range[1]}); };
  const blockAt = (x, y) => {
    const at = fromAxis(x);
    for (let i = from.length - 1; i >= 0; i--)
      if (from[i] <= at && at < to[i] && low[i] >= 0 && low[i] <= y && y < low[i] + size[i]) return i;
    return -1;
  };
  addTip(chart.root.parentNode, chart, (x, y) => { const i = blockAt(x, y); return i < 0 ? "" : blockText(pool, i); });
  addPicker(body, chart, pool, blockAt);
};

/* ---- the address space at the moment ---- */

const CELL = 9;
/* All regions one behind another, in cells: bytes in use and pending of each, exactly. */
const cellsOf = (space, most) => {
  const total = sum(space.regions.map(region => region.size)), cellBytes = Math.max(1, total / most);
  const cells = Math.min(most, Math.ceil(total / cellBytes)), used = new Float64Array(cells), pending = new Float64Array(cells), bare = new Float64Array(cells);
  const begins = new Set();
  let offset = 0, i = 0;
  for (const region of space.regions) {
    begins.add(Math.floor(offset / cellBytes));
    for (; i < space.pieces.length && space.pieces[i].start < region.start + region.size; i++) {
      const piece = space.pieces[i];
      let at = offset + piece.start - region.start;
      const over = at + piece.size;
      if (piece.start < region.start) continue;
      for (let c = Math.min(cells - 1, Math.floor(at / cellBytes)); at < over; c++) {
        const next = c >= cells - 1 ? over : Math.max(at, Math.min(over, (c + 1) * cellBytes));
        used[c] += (next - at) * piece.used; pending[c] += (next - at) * piece.pending; bare[c] += piece.bare ? next - at : 0;
        at = next;
      }
    }
    offset += region.size;
  }
  return {total, cellBytes, cells, used, pending, bare, begins};
};

const drawSpace = (canvas, grid) => {
  const columns = Math.floor(CHART_WIDTH() / CELL), rows = Math.ceil(grid.cells / columns), ratio = devicePixelRatio || 1;
  canvas.width = columns * CELL * ratio; canvas.height = rows * (CELL + 4) * ratio;
  canvas.style.width = columns * CELL + "px"; canvas.style.height = rows * (CELL + 4) + "px";
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  for (let c = 0; c < grid.cells; c++) {
    const x = (c % columns) * CELL, y = Math.floor(c / columns) * (CELL + 4), size = Math.min(grid.cellBytes, grid.total - c * grid.cellBytes);
    const tall = part => CELL * Math.min(1, part / size), full = tall(grid.used[c]), waits = tall(grid.pending[c]);
    pen.fillStyle = css("ready"); pen.fillRect(x, y, CELL - 1, CELL);
    pen.fillStyle = css("hole"); pen.fillRect(x, y, CELL - 1, tall(grid.bare[c]));
    pen.fillStyle = css("use"); pen.fillRect(x, y + CELL - full, CELL - 1, full);
    pen.fillStyle = css("pending"); pen.fillRect(x, y + CELL - full - waits, CELL - 1, waits);
    if (grid.begins.has(c)) { pen.fillStyle = css("text"); pen.fillRect(x, y, 1.5, CELL + 2); }
  }
  return columns;
};

const spaceWords = (number, pool, space) => {
  const total = sum(space.regions.map(region => region.size)), used = sum(space.pieces.map(piece => piece.size * piece.used));
  const bare = sum(space.pieces.filter(piece => piece.bare).map(piece => piece.size)), backed = total - bare;
  const words = [`${many(space.regions.length, "region")}, ${bytes(backed)}` + (bare ? ` and ${bytes(bare)} of addresses without a page` : "") +
    `; in use ${bytes(used)}, ${share(backed ? used / backed : 0)}`];
  if (toldSpace) words.push(`exact, as the job told at ${when(space.at)}` + (toldSpace.left_out ? `, without ${bytes(toldSpace.left_out)} for which it had no room` : ""));
  if (space.leftOut) words.push(`${count(space.leftOut)} more regions of the job are not in the map and not drawn`);
  if (space.exact) {
    const holes = holesOf(space), free = sum(holes), largest = holes.reduce((a, b) => Math.max(a, b), 0), request = largestRequest(pool, view.moment);
    const tooSmall = space.pieces.length ? sum(holes.filter(hole => hole < request)) : 0;
    words.push(`${many(holes.length, "free piece")}, the largest ${bytes(largest)}`,
      `fragmentation ${share(free ? tooSmall / free : 0)}: of the free bytes, those in pieces that cannot serve ${bytes(request)}, the largest request of the last 4,096 calls`);
  } else words.push(`by the map of ${when(space.at)}, whose cells tell fifteenths, rounded up`);
  return words.join("; ") + ".";
};

const holders = (pool, moment, most) => {
  const live = pool.blocks.at(moment).sort((a, b) => pool.blocks.bytes[b] - pool.blocks.bytes[a]);
  if (!live.length) return [element("p", {class: "faint"}, "No block whose allocation was seen here.")];
  const named = live.slice(0, most).some(i => nameOfBlock(pool, i));
  const rows = live.slice(0, most).map(i => element("tr", {}, cell(bytes(pool.blocks.bytes[i])), cell(count(pool.blocks.bytes[i])),
    ...(named ? [cell(nameOfBlock(pool, i), "")] : []), ...(hasStacks ? [cell(placeOf(pool.blocks.site[i]), "")] : []), cell("from " + when(pool.blocks.from[i]), ""),
    cell(pool.blocks.to[i] === Infinity ? "not freed" : "for " + stretch(pool.blocks.to[i] - pool.blocks.from[i]), ""), cell(hex(pool.blocks.address[i]), "")));
  const rest = live.slice(most);
  const all = table([["size"], ["bytes"], ...(named ? [["which", "t"]] : []), ...(hasStacks ? [["where", "t"]] : []), ["since", "t"], ["life", "t"], ["address", "t"]], rows);
  return [all, element("p", {class: "faint"}, rest.length ? `and ${many(rest.length, "more block")}: ${bytes(sum(rest.map(i => pool.blocks.bytes[i])))}` : "")];
};

const showSpace = (number, pool) => {
  const body = section("Address space at the moment", "The moment is the upright line in the charts: click there, or use the arrow keys. All regions one behind another, a mark where each begins; each cell is filled as far as its bytes are in use.");
  addKey(body, [["in use", "use"], ["pending, deferred", "pending"], ["ready", "ready"], ["no page behind it", "hole"]]);
  const head = element("p", {id: "moment"}), words = element("p", {id: "space", class: "faint"}), canvas = element("canvas", {role: "img", "aria-label": "address space"});
  const tip = element("div", {class: "tip", hidden: ""}), holder = element("div", {class: "chart"}, canvas, tip), list = element("div", {id: "holders"});
  body.append(head, words, holder, list);
  let grid = null, columns = 1;
  view.onMoment.push(() => {
    const space = spaceAt(number, view.moment), sample = lastUntil(pool.samples || [], view.moment);
    const step = pool.at.length ? lastUntil(pool.calls.map((call, i) => ({at: call.at, i})), view.moment) : null;
    head.textContent = `At ${when(view.moment)}` + (byCalls && step ? `: ${bytes(pool.live[step.i])} asked for by live blocks, ${bytes(pool.reserved[step.i])} reserved.`
      : sample ? `: in use ${bytes(sample.in_use)}, ready ${bytes(sample.ready)}, pending ${bytes(sample.pending + sample.deferred)}, reserved ${bytes(sample.reserved)}${asleepWords(sample)}, by the sample of ${when(sample.at)}.` : ".");
    if (space) {
      grid = cellsOf(space, Math.floor(CHART_WIDTH() / CELL) * 14);
      columns = drawSpace(canvas, grid);
      canvas.dataset.used = sum([...grid.used]); canvas.dataset.total = grid.total; /* what is drawn, for who checks it */
      words.textContent = spaceWords(number, pool, space);
    } else words.textContent = "No map was recorded.";
    list.replaceChildren(...(pool.blocks.count ? [element("p", {}, "Who held most at this moment:"), ...holders(pool, view.moment, 10)] : []));
  });
  canvas.addEventListener("mousemove", event => {
    const c = Math.floor(event.offsetX / CELL) + columns * Math.floor(event.offsetY / (CELL + 4));
    if (!grid || c >= grid.cells) { tip.hidden = true; return; }
    const size = Math.min(grid.cellBytes, grid.total - c * grid.cellBytes);
    showTip(tip, `${bytes(size)}: ${share(grid.used[c] / size)} in use` + (grid.pending[c] ? `, ${share(grid.pending[c] / size)} pending` : ""), event);
  });
  canvas.addEventListener("mouseleave", () => { tip.hidden = true; });
};

/* ---- peak, failures, and what else is told ---- */

const showPeak = pool => {
  if (!byCalls || !pool.peak) return;
  const body = section("The peak, and who held it", `${bytes(pool.peak)} (${count(pool.peak)} bytes) asked for by live blocks at ${when(pool.peakAt)}.`);
  const go = element("button", {type: "button"}, "show this moment above");
  go.addEventListener("click", () => { setMoment(pool.peakAt); main.scrollIntoView(); });
  body.append(...holders(pool, pool.peakAt, 15));
  if (hasStacks) {
    const held = heldAt(pool, pool.peakAt);
    body.append(element("p", {class: "faint"}, "By site, library and tag: " + stacksWords(pool, pool.blocks.at(pool.peakAt))), ...threeTables(held, 10));
  }
  body.append(go);
};

const WORDS = {a: "allocate", f: "free", g: "grow", r: "release", o: "out of memory", O: "out of memory, when recorded", b: "begin", e: "end"};
const callsTable = rows => table([[byCalls ? "call" : "seconds"], ["what", "t"], ["size"], ["address", "t"]], rows.map(call => element("tr",
  call.bad ? {class: "bad"} : {}, cell(byCalls ? count(call.at) : (call.at / 1e6).toFixed(6)), cell(call.what, "t"), cell(call.bytes ? bytes(call.bytes) : ""), cell(call.address ? hex(call.address) : "", "t"))));
const callsBefore = (pool, failure) => {
  if (byCalls) return pool.calls.slice(Math.max(0, failure.call - 256), failure.call + 1).map(call =>
    ({...call, what: WORDS[call.kind] + (["a", "f", "o"].includes(call.kind) ? ` ${start.names} ${call.name ?? 0}` : ""), bad: call.kind === "o" || call.kind === "O"}));
  return (failure.line?.events || []).map(e => ({at: e.us, what: e.kind.replaceAll("_", " "), bytes: e.bytes, address: e.kind === "trim" ? 0 : e.address, bad: e.kind === "out_of_memory"}));
};

const whyInReplay = (pool, failure) => {
  const space = spaceFromCalls(pool, failure.at), holes = holesOf(space), largest = holes.reduce((a, b) => Math.max(a, b), 0);
  const reserved = sum(space.regions.map(region => region.size)), free = sum(holes), used = reserved - free;
  const left = start.memory === null ? Infinity : Math.max(0, start.memory - reserved);
  const said = `${bytes(used)} in use of ${bytes(reserved)} reserved, ${bytes(free)} free, the largest free piece ${bytes(largest)}; ` +
    (left === Infinity ? "the device of the replay has no end" : `the device has ${bytes(left)} left`) + ". ";
  if (failure.recorded) return "When the trace was recorded this failed. In the replay at this call: " + said;
  return said + (largest < failure.bytes && free >= failure.bytes ? "Free bytes would suffice in one piece." : largest >= failure.bytes ?
    "The piece is not free to be reused yet, or policy forbids it." : "Neither a free piece nor the device suffices.");
};
const whyInJob = (pool, failure) => {
  const sample = lastUntil(pool.samples || [], failure.at);
  const refused = landmarks.filter(e => e.kind === "refused" && e.us <= failure.at && e.us > failure.at - 1e5).pop();
  return (sample ? `By the last sample before it, of ${when(sample.at)}: in use ${bytes(sample.in_use)}, ready ${bytes(sample.ready)}, the largest free block ${bytes(sample.largest_free)}, ` +
    `reserved ${bytes(sample.reserved)}${asleepWords(sample)}, the device has ${bytes(sample.device_total)} in all. ` : "No sample was taken before it. ") +
    (refused ? `Just before, the device refused ${bytes(refused.bytes)}. ` : "") + (failure.line?.missed ? "The calls before it were overwritten before the recorder looked: a shorter --interval keeps them." :
    failure.line ? "" : "The calls before it were not kept: at most 8 failures between two samples have theirs.");
};

const FAILURES_SHOWN = 50;
const showFailures = (number, pool, failures) => {
  const earlier = failuresBefore(number);
  if (!failures.length && !earlier) return;
  const body = section("Out of memory", (earlier ? `${count(earlier)} before the recording began are not shown. ` : "") +
    (failures.length > FAILURES_SHOWN ? `The first ${FAILURES_SHOWN} of ${count(failures.length)}.` : ""));
  failures.slice(0, FAILURES_SHOWN).forEach((failure, i) => {
    const rows = callsBefore(pool, failure), details = element("details", i < 2 ? {open: ""} : {});
    details.append(element("summary", {class: "bad"}, `${when(failure.at)}: ${bytes(failure.bytes)} asked for`),
      element("p", {}, byCalls ? whyInReplay(pool, failure) : whyInJob(pool, failure)));
    if (rows.length) details.append(element("p", {class: "faint"}, `The ${many(rows.length - 1, "call")} before it, the last first:`), callsTable(rows.slice(-21).reverse()));
    if (rows.length > 21) details.append(element("details", {}, element("summary", {}, `${rows.length - 21} earlier ones`), callsTable(rows.slice(0, -21).reverse())));
    body.append(details);
  });
};

const sizesOf = (number, pool) => {
  if (!byCalls) return ofType("sizes").map(line => line.pools.find(p => p.pool === number)).filter(Boolean).pop();
  const bins = new Map();
  for (const size of pool.blocks.bytes) { const up = 2 ** Math.ceil(Math.log2(Math.max(1, size))); bins.set(up, (bins.get(up) || 0) + 1); }
  return {sizes: [...bins].sort((a, b) => a[0] - b[0]).map(([up_to, n]) => ({up_to, count: n}))};
};
const showSizes = (number, pool) => {
  const histogram = sizesOf(number, pool);
  if (!histogram?.sizes.length) return;
  const body = section("Requested sizes", "How many requests had a size up to the figure on the left, and above half of it.");
  const tallest = histogram.sizes.reduce((most, bin) => Math.max(most, bin.count), 1);
  body.append(element("table", {}, ...histogram.sizes.map(bin => element("tr", {}, cell(bytes(bin.up_to)), cell(count(bin.count)),
    element("td", {}, element("div", {style: `background:var(--use);height:.8em;border-radius:2px;width:calc(min(40rem, 45vw) * ${Math.max(0.003, bin.count / tallest)})`}))))));
  for (const [name, title] of [["allocate_latency", "Time of an allocation"], ["free_latency", "Time of a free"]])
    if (histogram[name]?.timed) main.append(element("p", {class: "faint"},
      `${title}: half within ${duration(histogram[name].p50_ns)}, 99 % within ${duration(histogram[name].p99_ns)} (${count(histogram[name].timed)} timed)`));
};

/* What an event's address says: a trim's is the bytes requested, all ones everything; a last resort's nanoseconds. */
const TIMED = ["saved_contexts", "saved_jobs", "saved_sleep", "waited", "spilled", "asleep", "awake"];
const whereOf = e => e.kind === "trim" ? (e.address < 2 ** 63 ? `of ${bytes(e.address)} requested` : "all requested")
  : TIMED.includes(e.kind) ? "after " + duration(e.address) : e.address ? hex(e.address) : "";
const showLandmarks = number => {
  const mine = landmarks.filter(e => e.pool === number || e.pool === ALL_POOLS).reverse();
  if (!mine.length) return;
  const body = section("Events other than allocations and frees", `Newest first${mine.length > 200 ? ", 200 of " + count(mine.length) : ""}; seconds since the first CUDA allocation.`);
  body.append(element("table", {}, ...mine.slice(0, 200).map(e => element("tr", e.kind === "out_of_memory" ? {class: "bad"} : {}, cell((e.us / 1e6).toFixed(6)),
    cell(e.kind.replaceAll("_", " ") + (e.us < begun ? " (before the recording)" : ""), "t"), cell(e.bytes || e.kind === "trim" ? bytes(e.bytes) : ""), cell(whereOf(e), "t")))));
};

const tilesOf = (pool, failures) => {
  if (byCalls) return [["most live", bytes(pool.peak), pool.peak], ["most reserved", bytes(pool.peakReserved), pool.peakReserved], ["allocations", count(pool.allocations), pool.allocations],
    ["frees", count(pool.frees), pool.frees], ["never freed", count(pool.allocations - pool.frees), pool.allocations - pool.frees], ["out of memory", count(failures.length), failures.length]];
  const last = pool.samples?.[pool.samples.length - 1];
  if (!last) return [];
  const calls = last.hits + last.misses;
  return [["most in use", bytes(last.peak_in_use), last.peak_in_use], ["most reserved", bytes(last.peak_reserved), last.peak_reserved], ["allocations", count(last.allocations), last.allocations],
    ["hit rate", calls ? share(last.hits / calls) : "-", ""], ["host waits", count(last.host_waits), last.host_waits], ["fence waits", count(last.waits), last.waits],
    ["out of memory", count(last.out_of_memory), last.out_of_memory],
    ...(last.asleep ? [["asleep", bytes(last.asleep), last.asleep]] : []),
    ...(last.page_calls ? [["pages moved", bytes(last.pages_moved), last.pages_moved], ["calls for pages", count(last.page_calls), last.page_calls]] : [])];
};
