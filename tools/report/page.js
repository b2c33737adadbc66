/* The page as a whole: keys, what is shown of a pool, where it begins. */
const KEYS = [["← →", "moment: one call or sample back, forth; with Shift: a tenth of what is shown"], ["+ −", "zoom the time"], ["0", "show all"], ["[ ]", "move what is shown"],
  ["p", "moment: the peak"], ["o", "moment: the next out of memory"], ["f", "search the flame graph"], ["d", "dark or light"], ["Esc", "highlight no site; close this"], ["?", "these keys"],
  ["in the flame graph", "arrows move, Enter zooms, Backspace shows the whole"], ["mouse", "drag: zoom (in pictures of blocks both ways); wheel: zoom, with Shift: move; double click: show all; click: choose the moment, keep a block's words"],
  ["address", "#at=N, a call or seconds, behind the page's address begins there; #from=A&to=B shows that time"]];
const help = element("dialog", {"aria-label": "keys"}, element("h2", {}, "Keys and mouse"),
  element("table", {}, ...KEYS.map(([key, what]) => element("tr", {}, element("td", {}, element("kbd", {}, key)), element("td", {}, what)))));
document.body.append(help);
const toggleHelp = () => help.open ? help.close() : help.showModal();
const isDark = () => (document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
const toggleTheme = () => { document.documentElement.dataset.theme = isDark() ? "light" : "dark"; showAgain(); };

const onKey = event => {
  if (["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName)) return;
  const pool = poolOf(shown), failures = failuresOf(shown), middle = (view.from + view.to) / 2;
  const times = pool.at.length ? pool.at : (pool.samples || []).map(p => p.at);
  const by = forward => event.shiftKey ? view.moment + (forward ? 1 : -1) * (fromAxis(view.to) - fromAxis(view.from)) / 10
    : forward ? times.find(at => at > view.moment) : times.findLast(at => at < view.moment);
  const keys = {ArrowLeft: () => setMoment(by(false) ?? view.moment), ArrowRight: () => setMoment(by(true) ?? view.moment),
    "+": () => zoom(0.5, middle), "=": () => zoom(0.5, middle), "-": () => zoom(2, middle), 0: () => showTime(...wholeTime()),
    "[": () => showTime(view.from - (view.to - view.from) / 4, view.to - (view.to - view.from) / 4), "]": () => showTime(view.from + (view.to - view.from) / 4, view.to + (view.to - view.from) / 4),
    "?": toggleHelp, d: toggleTheme, f: () => document.querySelector("input[type=search]")?.focus(), Escape: () => help.open ? help.close() : choose(chosen.site),
    p: () => setMoment(byCalls ? pool.peakAt : (pool.samples || []).reduce((a, b) => b.in_use > a.in_use ? b : a).at),
    o: () => setMoment((failures.find(f => f.at > view.moment) || failures[0])?.at ?? view.moment)};
  if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
  event.preventDefault();
  keys[event.key]();
};

const show = number => {
  const pool = poolOf(number), failures = failuresOf(number);
  shown = number;
  for (const chart of view.charts) chart.destroy();
  view.charts = []; view.onMoment = []; view.onTime = [];
  document.getElementById("tiles").replaceChildren(...tilesOf(pool, failures).map(([name, text, value]) => element("div", {class: "tile"},
    element("span", {class: "faint"}, name), element("b", {"data-key": name, "data-value": value, ...(name === "out of memory" && value ? {class: "bad"} : {})}, text))));
  main.replaceChildren();
  if (!byCalls) main.append(element("p", {class: "faint"}, "Above: totals and peaks since the job began, counted exactly, not only during the recording."));
  showMemory(pool, failures);
  showStacked(pool, failures);
  showBlocks(number, pool, failures);
  showSpace(number, pool);
  showWho(pool);
  showGrowth(pool);
  showPeak(pool);
  showFailures(number, pool, failures);
  showFragmentation(pool, failures);
  showSizes(number, pool);
  showLandmarks(number);
  main.append(element("h2", {}, "Configuration in force"), element("pre", {}, start.configuration));
  tell(view.onMoment); tell(view.onTime);
};
/* What is shown stays. */
const showAgain = () => { if (numbers.length) show(shown); };

/* Where a pool begins to be shown: what the address asks for (a call, or seconds), else its peak or first failure. */
const asked = new URLSearchParams(location.hash.slice(1));
const begin = number => {
  const pool = poolOf(number);
  [view.from, view.to] = wholeTime();
  view.moment = byCalls ? pool.peakAt : failuresOf(number)[0]?.at ?? lastAt;
  if (asked.has("at")) view.moment = Math.min(Math.max(fromAxis(+asked.get("at") || 0), firstAt), lastAt);
  if (asked.has("from") && asked.has("to")) showTime(+asked.get("from") || 0, +asked.get("to") || 0);
  show(number);
};

const nameOf = number => {
  const sample = poolOf(number).samples?.[0];
  return sample ? `device ${sample.device}: ${sample.device_name}${sample.memory === "host" ? ", host memory (BFC_SPILL)" : ""}, ${bytes(sample.device_total)}` : `device ${number}`;
};
const setting = name => (new RegExp(`^${name}=(.*)$`, "m").exec(start.configuration) || ["", "?"])[1];
const sleepWords = sleep => sleep?.state === "asleep" ? `asleep since ${new Date(sleep.since_ns / 1e6).toLocaleString()}, ${bytes(sleep.asleep)} in ${sleep.where}` : "";
document.title = "bfcpreload: " + start.command;
document.getElementById("title").textContent = start.command;
document.getElementById("about").textContent = [
  start.pid ? "process " + start.pid : "", typeof start.rank === "number" ? `rank ${start.rank} of ${start.ranks ?? "?"}` : "", start.job ? "job " + start.job : "",
  "bfcpreload " + start.library, byCalls ? `a trace, replayed: ${count(end?.at ?? 0)} calls; the clock counts calls` :
  `first CUDA allocation ${new Date(start.created_ns / 1e6).toLocaleString()}`, byCalls ? `policy ${setting("BFC_POLICY")}, growth ${setting("BFC_GROWTH")}, free ${setting("BFC_FREE")}, ${start.memory === null ? "a device without end" : bytes(start.memory)}` : `${many(samples.length, "sample")}, ${begun === lastAt ? "at " + when(begun) : `from ${when(begun)} to ${when(lastAt)}`}`,
  sleepWords(samples.at(-1)?.sleep), end ? "" : "the recording is incomplete", unreadable ? `${many(unreadable, "line")} of it damaged and left out` : ""].filter(Boolean).join(" · ");
const numbers = [...pools.keys()].filter(number => number !== ALL_POOLS).sort((a, b) => a - b);
if (numbers.length > 1) {
  const select = element("select", {"aria-label": "pool"}, ...numbers.map(number => element("option", {value: number}, nameOf(number))));
  select.addEventListener("change", () => begin(+select.value));
  document.getElementById("choice").append(select);
} else if (numbers.length) document.getElementById("choice").textContent = nameOf(numbers[0]);
if (numbers.length) begin(numbers[0]);
else main.append(element("p", {}, "No pool: no allocation was served from one during the recording."));
document.addEventListener("keydown", onKey);
document.getElementById("dark").addEventListener("click", toggleTheme);
document.getElementById("keys").addEventListener("click", toggleHelp);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", showAgain);
/* A phone that is turned, or a window of another width. */
let drawnAt = CHART_WIDTH();
addEventListener("resize", () => { if (CHART_WIDTH() !== drawnAt) { drawnAt = CHART_WIDTH(); showAgain(); } });
/* On paper all is open, and light. */
addEventListener("beforeprint", () => {
  if (isDark()) { toggleTheme(); addEventListener("afterprint", toggleTheme, {once: true}); }
  for (const details of document.querySelectorAll("details")) details.open = true;
});

/* Beside another report: each tells what it needs, and takes the larger of both; what is shown of the time is common. */
if (parent !== window) {
  const own = {most: view.ownMost, span: toAxis(lastAt - firstAt), clock: byCalls ? "calls" : "seconds"};
  const tellOther = () => parent.postMessage({from: view.from - toAxis(firstAt), to: view.to - toAxis(firstAt)}, "*");
  /* What came from the other is not told back: it could overtake what the user does there meanwhile. */
  const showUntold = (from, to) => { const told = view.onShown; view.onShown = () => {}; showTime(from, to); view.onShown = told; };
  addEventListener("message", ({source, data}) => {
    if (source !== parent) return;
    if (data.most !== undefined) {
      const sameClock = data.clock === own.clock;
      Object.assign(view, {commonMost: data.most, commonSpan: sameClock ? data.span : 0, onShown: sameClock ? tellOther : () => {}});
      showUntold(...wholeTime());
      showAgain();
    } else if (data.from !== undefined) showUntold(data.from + toAxis(firstAt), data.to + toAxis(firstAt));
  });
  parent.postMessage(own, "*");
}
