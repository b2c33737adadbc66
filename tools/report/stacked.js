/* Every block over time, one on another. A picture's column shows the moment in it at which most is held, so no peak is lost;
   what is smaller than a pixel is added up. Blocks beyond the DETAILED largest are one band on top. */
const DETAILED = 20000, STRIDE = 4096;

class Stacked {
  /* `key`: "size", the largest at the bottom, or "time", the oldest. */
  constructor(blocks, key) {
    this.blocks = blocks;
    const all = Array.from({length: blocks.count}, (_, i) => i), bySize = (a, b) => blocks.bytes[b] - blocks.bytes[a] || a - b;
    const kept = blocks.count > DETAILED || key === "size" ? all.sort(bySize).slice(0, DETAILED) : all;
    this.byRank = Int32Array.from(key === "size" ? kept : kept.sort((a, b) => a - b));
    this.rank = new Int32Array(blocks.count).fill(-1);
    this.byRank.forEach((i, rank) => { this.rank[i] = rank; });
    this.leftOut = blocks.count - kept.length;
    this.totals = new Float64Array(blocks.order.length);
    this.checkpoints = [];
    let total = 0;
    for (let k = 0; k < blocks.order.length; k++) this.totals[k] = total += this.sizeOf(blocks.order[k]);
    this.begin();
  }
  sizeOf(order) { return order > 0 ? this.blocks.bytes[order - 1] : -this.blocks.bytes[-order - 1]; }
  begin() { this.next = 0; this.live = []; this.small = 0; }
  /* The state after so many of the blocks' begins and ends. */
  goTo(events) {
    const saved = this.checkpoints[Math.floor(events / STRIDE)];
    if (saved && (events < this.next || saved.next > this.next)) { this.next = saved.next; this.live = saved.live.slice(); this.small = saved.small; }
    else if (events < this.next) this.begin();
    for (; this.next < events; this.next++) {
      if (this.next % STRIDE === 0) this.checkpoints[this.next / STRIDE] ||= {next: this.next, live: this.live.slice(), small: this.small};
      this.apply(this.blocks.order[this.next]);
    }
  }
  apply(order) {
    const rank = this.rank[Math.abs(order) - 1];
    if (rank < 0) { this.small += this.sizeOf(order); return; }
    let low = 0, high = this.live.length;
    while (low < high) { const middle = (low + high) >> 1; if (this.live[middle] < rank) low = middle + 1; else high = middle; }
    this.live.splice(low, order > 0 ? 0 : 1, ...(order > 0 ? [rank] : []));
  }
  /* How many begins and ends there were until a moment, its own included. */
  eventsUntil(moment) {
    const at = this.blocks.orderAt;
    let low = 0, high = at.length;
    while (low < high) { const middle = (low + high) >> 1; if (at[middle] <= moment) low = middle + 1; else high = middle; }
    return low;
  }
  /* For each column the number of events at which most is held in it. */
  columns(from, to, count) {
    const chosen = new Int32Array(count);
    let k = this.eventsUntil(from);
    for (let c = 0; c < count; c++) {
      const end = from + (to - from) * (c + 1) / count;
      let best = k;
      for (; k < this.blocks.orderAt.length && this.blocks.orderAt[k] < end; k++)
        if (this.totals[k] > (best ? this.totals[best - 1] : 0)) best = k + 1;
      chosen[c] = best;
    }
    return chosen;
  }
  /* The block at a height at a moment: its index; -1: none. */
  hit(moment, height) {
    this.goTo(this.eventsUntil(moment));
    for (const rank of this.live) {
      const i = this.byRank[rank];
      if (height < this.blocks.bytes[i]) return height < 0 ? -1 : i;
      height -= this.blocks.bytes[i];
    }
    return -1;
  }
}

const rgb = colour => [1, 3, 5].map(at => parseInt(colour.slice(at, at + 2), 16));
const COLOURS = PALETTE.map(rgb), SMALL = rgb("#8a94a0"), NO_STACK = ["#b3bbc4", "#cad0d6"].map(rgb);
/* Blocks of one site have one colour, those without have greys; all but the chosen one's fade. */
const colourOf = (blocks, i) => hasStacks && !blocks.site[i] ? NO_STACK[i % 2] : COLOURS[(hasStacks ? blocks.site[i] : i) % COLOURS.length];
const strengthOf = (blocks, i) => chosen.site && blocks.site[i] !== chosen.site ? 0.16 : 1;

/* One column: sums of colour and cover of each pixel, which `put` takes, lowest first. */
const paintColumn = (stacked, tall, scale, lowest, column) => {
  column.fill(0);
  let height = -lowest * scale;
  const add = (size, colour, strength) => {
    const from = Math.max(0, height), to = Math.min(tall, height + size * scale);
    height += size * scale;
    const line = to - from > 3; /* a seam between large blocks */
    for (let y = Math.floor(from); y < to; y++) {
      const cover = (Math.min(to, y + 1) - Math.max(from, y)) * strength, shade = line && y + 1 >= to ? 0.72 : 1, at = 4 * y;
      column[at] += cover * colour[0] * shade; column[at + 1] += cover * colour[1] * shade; column[at + 2] += cover * colour[2] * shade; column[at + 3] += cover;
    }
  };
  for (const rank of stacked.live) {
    const i = stacked.byRank[rank];
    if (height >= tall) return;
    add(stacked.blocks.bytes[i], colourOf(stacked.blocks, i), strengthOf(stacked.blocks, i));
  }
  add(stacked.small, SMALL, chosen.site ? 0.16 : 1);
};

const paintStacked = (chart, stacked) => {
  const {min: x0, max: x1} = chart.scales.x, {min: y0, max: y1} = chart.scales.y;
  const {picture, pen, wide, tall} = newPicture(chart), column = new Float32Array(4 * (tall + 1));
  const image = pen.createImageData(wide, tall), columns = stacked.columns(fromAxis(x0), fromAxis(x1), wide);
  for (let c = 0; c < wide; c++) {
    if (fromAxis(x0 + (x1 - x0) * c / wide) > lastAt) break;
    if (c === 0 || columns[c] !== columns[c - 1]) {
      stacked.goTo(columns[c]);
      paintColumn(stacked, tall, tall / (y1 - y0), y0, column);
    }
    for (let y = 0; y < tall; y++) {
      const from = 4 * y, to = 4 * ((tall - 1 - y) * wide + c), cover = column[from + 3];
      if (!cover) continue;
      for (let part = 0; part < 3; part++) image.data[to + part] = column[from + part] / cover;
      image.data[to + 3] = 255 * Math.min(1, cover);
    }
  }
  pen.putImageData(image, 0, 0);
  return picture;
};

const showStacked = (pool, failures) => {
  if (!pool.blocks.count) return;
  const {blocks} = pool, base = baseOf(pool).live;
  const body = section("Every block, stacked", "The height is what live blocks asked for. Each is from its allocation to its free, and sinks when one below it is freed. " +
    `Click one to keep what is known of it.${base ? ` Without ${bytes(base)} ${unseen}.` : ""}${lostWords} ${hasStacks ? "Blocks of one call stack have one colour, of eight; light grey: without a stack. " : ""}${stacksWords(pool, Array.from({length: blocks.count}, (_, i) => i))}`);
  let stacked = new Stacked(blocks, "size"), draw = asPicture(u => paintStacked(u, stacked));
  const most = stacked.totals.reduce((a, b) => Math.max(a, b), 1), whole = () => [0, Math.max(most, view.commonMost) * 1.04];
  const select = element("select", {"aria-label": "order"}, element("option", {value: "size"}, "largest at the bottom"), element("option", {value: "time"}, "oldest at the bottom"));
  body.append(select, stacked.leftOut ? element("span", {class: "faint"}, ` The ${count(DETAILED)} largest blocks; the ${count(stacked.leftOut)} others are the dark grey band on top.`) : "");
  let band = whole();
  const chart = addChart(body, "every block, stacked", [[toAxis(firstAt), toAxis(lastAt)], [0, 0]], [{show: true, label: "asked for", width: 0, points: {show: false}}],
    {height: 380, failures, legend: false, onlyX: false, y: {range: () => band}, draw: [u => draw(u)]});
  chart.onBand = (least, top) => { band = least === undefined ? whole() : [Math.max(0, least), Math.min(whole()[1], top)]; chart.setScale("y", {min: band[0], max: band[1]}); };
  chart.root.parentNode.dataset.most = most;
  const blockAt = (x, y) => stacked.hit(fromAxis(x), y);
  addTip(chart.root.parentNode, chart, (x, y) => { const i = blockAt(x, y); return i < 0 ? "" : blockText(pool, i); });
  addPicker(body, chart, pool, blockAt);
  select.addEventListener("change", () => { stacked = new Stacked(blocks, select.value); draw = asPicture(u => paintStacked(u, stacked)); chart.redraw(false); });
};
