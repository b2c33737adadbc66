/* Call stacks: sites, what they hold at a moment, and how that changes. A trace's figures are sums over its sampled
   blocks, each times the blocks that it stands for; a recording's are those that the job told. */
const sites = [];
for (const line of ofType("sites")) line.sites.forEach((site, i) => { sites[line.first + i] = site; });
const toldMoments = ofType("who").filter(line => line.held).map(line => ({at: line.us, ...line}));
const noStacksBecause = ofType("who").filter(line => line.reason).map(line => line.reason).pop();
const hasStacks = sites.length > 0;

/* Blocks of a recording get the sites of the samples that were told while they lived. */
const giveSites = pool => {
  for (const told of toldMoments) {
    const live = new Map(pool.blocks.at(told.at).map(i => [pool.blocks.address[i], i]));
    for (const [address, size, site] of told.blocks) {
      const i = live.get(address);
      if (i === undefined || pool.blocks.bytes[i] !== size) continue;
      pool.blocks.site[i] = site;
    }
  }
};
/* Or of the samples that were taken at their events, though freed since. */
const takenSites = new Map(ofType("taken").flatMap(line => line.sites));
if (takenSites.size) for (const {blocks} of pools.values())
  blocks.name.forEach((event, i) => { blocks.site[i] = takenSites.get(event) || 0; });
if (!byCalls) for (const pool of pools.values()) giveSites(pool);

const fileName = path => path.slice(path.lastIndexOf("/") + 1);
/* Lines of Python from the innermost of the user's own on, or else the function that is the place. Of the two texts of a
   frame, the second has a line only if it is of Python. */
const nameSite = ({place, frames}) => {
  const found = frames.map(([, name]) => /\(([^()]+:\d+)\)$/.exec(name)?.[1]).filter((text, i, all) => text && text !== all[i - 1]);
  const first = Math.max(found.indexOf(place), 0);
  return found.length ? found.slice(first, first + 3).join(" ← ") : place || frames[0]?.[0] || "unknown";
};
const siteNames = sites.map(nameSite);
const placeOf = site => site ? siteNames[site] || "unknown" : "no stack";
const GROUPS = {site: placeOf, library: site => fileName(sites[site]?.library || "") || "unknown", tag: site => sites[site]?.tag || "no tag"};
/* Innermost first. */
const stackLines = site => sites[site]?.frames.map(([text]) => text) ?? [];

const newHeld = () => ({bytes: 0, blocks: 0, samples: 0, variance: 0});
const addBlock = (held, {blocks}, i, sign) => {
  const site = blocks.site[i], weight = blocks.weight[i];
  if (!site) return;
  if (!held.has(site)) held.set(site, newHeld());
  const sum = held.get(site);
  sum.bytes += sign * weight * blocks.bytes[i]; sum.blocks += sign * weight; sum.samples++;
  sum.variance += blocks.bytes[i] ** 2 * weight * (weight - 1);
};
const fromTold = told => new Map(told.held.map(([site, size, blocks, error, , samples]) => [site, {bytes: size, blocks, samples, variance: error ** 2}]));
const toldAt = moment => lastUntil(toldMoments, moment) || toldMoments[0];

/* What each site holds: a Map from sites. */
const heldAt = (pool, moment) => {
  if (!byCalls) return toldMoments.length ? fromTold(toldAt(moment)) : new Map();
  const held = new Map();
  for (const i of pool.blocks.at(moment)) addBlock(held, pool, i, 1);
  return held;
};

/* The change of each site between two moments, and how long that was: seconds, or calls. */
const grownBetween = (pool, from, to) => {
  if (byCalls) {
    const grown = new Map();
    for (let i = 0; i < pool.blocks.count; i++) {
      const begins = pool.blocks.from[i] >= from && pool.blocks.from[i] <= to, ends = pool.blocks.to[i] >= from && pool.blocks.to[i] <= to;
      if (begins !== ends) addBlock(grown, pool, i, begins ? 1 : -1);
    }
    return {grown, length: to - from, from, to};
  }
  const first = toldMoments.length ? toldAt(from) : null, last = first && lastUntil(toldMoments, to);
  if (!last || last.at <= first.at) return null;
  const grown = fromTold(last);
  for (const [site, was] of fromTold(first)) {
    const sum = grown.get(site) || newHeld();
    grown.set(site, {bytes: sum.bytes - was.bytes, blocks: sum.blocks - was.blocks, samples: sum.samples, variance: sum.variance + was.variance});
  }
  return {grown, length: (last.at - first.at) / 1e6, from: first.at, to: last.at};
};

/* Sums by "site" (then of each alone), "library" or "tag", most bytes first. */
const groupBy = (held, what) => {
  const groups = new Map();
  for (const [site, sum] of held) {
    const name = GROUPS[what](site), key = what === "site" ? site : name;
    if (!groups.has(key)) groups.set(key, {name, site: what === "site" ? site : 0, ...newHeld()});
    const group = groups.get(key);
    for (const figure of ["bytes", "blocks", "samples", "variance"]) group[figure] += sum[figure];
  }
  return [...groups.values()].filter(group => Math.abs(group.bytes) >= 1).sort((a, b) => b.bytes - a.bytes);
};

/* A tree of what is held, the outermost frame first; names as bfcstat who --collapsed has them. */
const pathOf = site => { const frames = sites[site]?.frames ?? []; return frames.length ? frames.map(([, name]) => name).reverse() : ["unknown"]; };
const newNode = (name, parent) => ({name, parent, bytes: 0, children: new Map()});
const treeOf = held => {
  const root = newNode("all", null);
  for (const [site, sum] of held) {
    if (sum.bytes < 1) continue;
    let node = root;
    root.bytes += sum.bytes;
    for (const name of pathOf(site)) {
      if (!node.children.has(name)) node.children.set(name, newNode(name, node));
      node = node.children.get(name);
      node.bytes += sum.bytes;
    }
  }
  return root;
};
const collapsedLines = held => [...held].filter(([, sum]) => sum.bytes >= 1).sort((a, b) => b[1].bytes - a[1].bytes)
  .map(([site, sum]) => `${pathOf(site).join(";")} ${Math.round(sum.bytes)}`);

/* What is known of the stacks of some blocks, in words. */
const stacksWords = (pool, which) => {
  if (start.names === "row") return "Colours tell neighbours apart.";
  if (!hasStacks) return byCalls ? "No call stacks: the trace has none (BFC_STACKS=off, or an older bfcpreload)." : `No call stacks: ${noStacksBecause || "the recording has none"}.`;
  const known = which.filter(i => pool.blocks.site[i]).length;
  const all = byCalls ? known === which.length && which.every(i => pool.blocks.weight[i] <= 1) : toldMoments.some(told => told.exact);
  return `${count(known)} of ${many(which.length, "block")} ${known === 1 ? "has" : "have"} a stack` + (all ? known === which.length ? ", exact." : "; the job was not asked while the others were in use." : "; sampled by size (BFC_STACKS=sample), so sums by site are estimates: of many small blocks few have one.");
};
