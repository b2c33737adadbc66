/* Who holds the memory: by site, library and tag, as it grows, and at the moment. */
const chosen = {site: 0};
const choose = site => {
  chosen.site = chosen.site === site ? 0 : site;
  for (const row of document.querySelectorAll("tr[data-site]")) row.classList.toggle("chosen", +row.dataset.site === chosen.site);
  for (const chart of view.charts) chart.redraw(false);
};

const stackDetails = site => {
  const lines = stackLines(site);
  return element("details", {}, element("summary", {}, placeOf(site)), element("pre", {}, lines.length ? lines.join("\n") : "no stack: it could not be walked, or there was no room"));
};

/* A row of a table by site, which chooses it. */
const siteRow = (site, cells) => {
  const row = element("tr", site ? {"data-site": site, tabindex: "0", ...(chosen.site === site ? {class: "chosen"} : {})} : {}, ...cells);
  if (!site) return row;
  row.addEventListener("click", () => choose(site));
  row.addEventListener("keydown", event => { if (event.key === "Enter") choose(site); });
  return row;
};
const signed = n => (n < 0 ? "-" : "") + bytes(Math.abs(n));
const nameCell = group => element("td", {}, group.site ? stackDetails(group.site) : group.name);

const heldTable = (held, what, most) => {
  const groups = groupBy(held, what), total = sum(groups.map(group => group.bytes));
  return table([["in use"], ["±"], ["blocks"], ["share"], [what, "t"]], groups.slice(0, most).map(group => siteRow(group.site,
    [cell(signed(group.bytes)), cell(group.variance > 0 ? bytes(Math.sqrt(group.variance)) : ""), cell(count(Math.round(group.blocks))), cell(share(group.bytes / total)), nameCell(group)])));
};
const threeTables = (held, most) => Object.keys(GROUPS).map(what => {
  const body = heldTable(held, what, most);
  body.dataset.by = what;
  return body;
});

const showGrowth = pool => {
  if (!hasStacks) return;
  const unit = byCalls ? "1,000 calls" : "s";
  const body = section("Growth by site", "Change in what is in use over the time that is shown, most first; click a row to highlight its blocks.");
  const words = element("p", {class: "faint"}), holder = element("div", {id: "growth"});
  body.append(words, holder);
  view.onTime.push(() => {
    const change = grownBetween(pool, fromAxis(view.from), fromAxis(view.to));
    holder.replaceChildren();
    if (!change) { words.textContent = "The job told only one moment in this time: bfcstat record asks it every 10 s."; return; }
    words.textContent = `From ${when(change.from)} to ${when(change.to)}.` + (byCalls ? "" : " Of the whole process.");
    const rate = n => signed(n / (byCalls ? change.length / 1000 : change.length)) + "/" + unit;
    holder.append(table([["change"], ["±"], ["rate"], ["blocks"], ["site", "t"]], groupBy(change.grown, "site").slice(0, 25).map(group => siteRow(group.site,
      [cell(signed(group.bytes)), cell(group.variance > 0 ? bytes(Math.sqrt(group.variance)) : ""), cell(rate(group.bytes)), cell(count(Math.round(group.blocks))), nameCell(group)]))));
  });
};

/* How much of what is asked for the samples account for: by chance more, or less. */
const coverWords = (pool, held) => {
  const sampled = sum([...held.values()].map(group => group.bytes));
  const asked = byCalls ? sum(pool.blocks.at(view.moment).map(i => pool.blocks.bytes[i]))
    : sum([...pools.values()].map(one => lastUntil(one.samples || [], toldAt(view.moment).at)?.requested ?? 0));
  return ` The figures below come to ${bytes(sampled)} of ${bytes(asked)} asked for.`;
};

const showWho = pool => {
  if (start.names === "row") return; /* a CSV never has stacks */
  const body = section("Who holds the memory at the moment");
  const words = element("p", {class: "faint", id: "stacks"}), tables = element("div", {id: "who"}), flame = newFlame();
  body.append(words, tables);
  if (hasStacks) body.append(element("p", {class: "faint"}, "By call stack, the outermost frame on top: click a frame to zoom, arrows and Enter do the same."), flame.body);
  view.onMoment.push(() => {
    const held = heldAt(pool, view.moment);
    words.textContent = stacksWords(pool, pool.blocks.at(view.moment)) +
      (byCalls || !toldMoments.length ? "" : ` The figures are of the whole process at ${when(toldAt(view.moment).at)}, when the job told them.`) + (held.size ? coverWords(pool, held) : "");
    tables.replaceChildren(...(held.size ? threeTables(held, 12) : []));
    flame.show(held);
  });
};

/* What is known of a block that was clicked. */
const addPicker = (body, chart, pool, blockAt) => {
  const picked = element("pre", {class: "picked", "aria-live": "polite"});
  body.append(picked);
  chart.over.addEventListener("click", () => {
    const i = blockAt(chart.posToVal(chart.cursor.left, "x"), chart.posToVal(chart.cursor.top, "y"));
    picked.textContent = i < 0 ? "" : blockText(pool, i, Infinity);
  });
};
