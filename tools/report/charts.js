/* Words for numbers, and charts over one time axis. */
const element = (name, attributes, ...children) => {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) node.setAttribute(key, value);
  node.append(...children);
  return node;
};
const bytes = n => {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (n >= 1023.5 && unit < 4) { n /= 1024; unit++; }
  return (unit && n < 9.995 ? n.toFixed(2) : unit && n < 99.95 ? n.toFixed(1) : n.toFixed(0)) + " " + units[unit];
};
/* Of a tick, which is a power of two, or a few of them. */
const tick = n => bytes(n).replace(/\.0+ /, " ").replace(/(\.\d)0 /, "$1 ");
const count = n => n.toLocaleString("en");
const many = (n, what) => `${count(n)} ${what}${n === 1 ? "" : "s"}`;
const duration = ns => ns < 1e3 ? ns + " ns" : ns < 1e6 ? +(ns / 1e3).toPrecision(3) + " us" : ns < 1e9 ?
  +(ns / 1e6).toPrecision(3) + " ms" : +(ns / 1e9).toPrecision(3) + " s";
/* Not quite nothing is not 0.0 %, and not quite all not 100.0 %: as bfcstat has it. */
const share = x => x === null || x === undefined || x < 0 ? "not measured" : x > 0 && x < 0.0005 ? "<0.1 %" : x >= 0.9995 && x < 1 ? ">99.9 %" : (100 * x).toFixed(1) + " %";
/* A moment, and a stretch, by the recording's clock. */
const when = at => byCalls ? "call " + count(at) : (at / 1e6).toFixed(6) + " s";
const stretch = length => !isFinite(length) ? "to the end" : byCalls ? count(length) + " calls" : duration(length * 1e3);
const hex = address => "0x" + address.toString(16);

const css = name => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
const POWERS = Array.from({length: 50}, (_, i) => 2 ** i);
const DECADES = Array.from({length: 16}, (_, i) => [1, 2, 5].map(n => n * 10 ** i)).flat();
/* A moment goes there and back unchanged: moments are whole nanoseconds at the finest. */
const toAxis = at => byCalls ? at : at / 1e6, fromAxis = x => byCalls ? x : Math.round(x * 1e9) / 1e3;
const CHART_WIDTH = () => Math.max(240, Math.min(1184, document.getElementById("main").clientWidth));
const isNarrow = () => CHART_WIDTH() < 560;

/* Words beside the mouse, wholly inside what is seen of the page. */
const showTip = (tip, text, {clientX, clientY}) => {
  tip.hidden = !text;
  tip.textContent = text;
  const {offsetWidth: wide, offsetHeight: tall} = tip, right = document.documentElement.clientWidth - wide - 4, below = clientY + 18;
  tip.style.left = Math.max(4, Math.min(clientX + 14, right)) + "px";
  tip.style.top = Math.max(4, below + tall + 4 > innerHeight ? clientY - tall - 12 : below) + "px";
};

/* Charts share what is shown of the time, and the moment. */
const view = {charts: [], from: 0, to: 1, moment: 0, onMoment: [], onTime: [], ownMost: 0, commonMost: 0, commonSpan: 0, onShown: () => {}};
const tell = listeners => { for (const listener of listeners) listener(); };
const wholeTime = () => [toAxis(firstAt), toAxis(firstAt) + Math.max(toAxis(lastAt - firstAt), byCalls ? 1 : 1e-6, view.commonSpan)];
const showTime = (from, to) => {
  const [least, most] = wholeTime(), narrowest = byCalls ? 4 : 1e-5;
  const width = Math.min(Math.max(to - from, narrowest), most - least);
  view.from = Math.min(Math.max(from, least), most - width);
  view.to = view.from + width;
  for (const chart of view.charts) chart.setScale("x", {min: view.from, max: view.to});
  tell(view.onTime);
  view.onShown();
};
const zoom = (factor, around) => showTime(around - (around - view.from) * factor, around + (view.to - around) * factor);
const setMoment = at => {
  view.moment = Math.min(Math.max(at, firstAt), lastAt);
  const x = toAxis(view.moment), width = view.to - view.from;
  if (x < view.from || x > view.to) showTime(x - width / 2, x + width / 2);
  tell(view.onMoment);
  for (const chart of view.charts) chart.redraw(false);
};

/* What a chart shows inside its axes, drawn anew only when that changes, not with each move of the moment. */
const newPicture = ({bbox}) => {
  const picture = document.createElement("canvas"), wide = Math.round(bbox.width), tall = Math.round(bbox.height);
  picture.width = wide; picture.height = tall;
  return {picture, pen: picture.getContext("2d"), wide, tall};
};
const asPicture = paint => {
  let known = "", picture = null;
  return chart => {
    const {x, y} = chart.scales, {left, top, width, height} = chart.bbox, now = [x.min, x.max, y.min, y.max, width, height, chosen.site].join();
    if (now !== known) picture = paint(chart);
    known = now;
    chart.ctx.drawImage(picture, left, top);
  };
};

/* The least and the most of a figure within each column of pixels, which may have many calls: a value stays until the next one. */
const columnsOf = ([x, figures], from, to, count) => {
  const least = new Float64Array(count).fill(NaN), most = new Float64Array(count).fill(NaN);
  let low = 0, high = x.length;
  while (low < high) { const middle = (low + high) >> 1; if (x[middle] <= from) low = middle + 1; else high = middle; }
  for (let c = 0, i = low; c < count; c++) {
    const end = from + (to - from) * (c + 1) / count, first = Math.max(0, i - 1);
    while (i < x.length && x[i] < end) i++;
    if (i === 0 || first >= x.length - 1 && x[x.length - 1] < end - (to - from) / count) continue;  // before the first call, or after the last
    for (let k = first; k < i; k++) {
      if (!(figures[k] >= least[c])) least[c] = figures[k];
      if (!(figures[k] <= most[c])) most[c] = figures[k];
    }
  }
  return {least, most};
};

/* Layers over one time, one before another: areas in full colour up to each column's least and light up to its most, or lines. */
const paintLayers = (chart, layers) => {
  const {min: x0, max: x1} = chart.scales.x, {min: y0, max: y1} = chart.scales.y, {picture, pen, wide, tall} = newPicture(chart);
  const height = figure => Math.round((figure - y0) / (y1 - y0) * tall);
  for (const {data, colour, line} of layers) {
    const {least, most} = columnsOf(data, x0, x1, wide), paint = (c, low, high, alpha) => {
      pen.globalAlpha = alpha; pen.fillRect(c, tall - high, 1, high - low); };
    for (let c = 0; c < wide; c++) {
      if (isNaN(most[c])) continue;
      const low = height(least[c]), high = height(most[c]), thick = Math.ceil(1.5 * devicePixelRatio);
      pen.fillStyle = css(line ? colour : "back"); paint(c, line ? low - thick : low, high, 1);
      if (line) continue;
      pen.fillStyle = css(colour); paint(c, 0, low, 1); paint(c, low, high, 0.55);
    }
  }
  return picture;
};
/* In words, at a place of the chart. */
const columnWords = (chart, data) => {
  if (!(chart.cursor.left >= 0)) return "–";
  const at = left => chart.posToVal(left, "x"), {least, most} = columnsOf(data, at(chart.cursor.left), at(chart.cursor.left + 1), 1);
  return isNaN(most[0]) ? "–" : least[0] === most[0] ? bytes(most[0]) : `${bytes(least[0])} to ${bytes(most[0])}`;
};

const verticals = (failures) => chart => {
  const {ctx, bbox} = chart;
  const line = (x, colour, dash) => {
    const at = chart.valToPos(x, "x", true);
    if (at < bbox.left || at > bbox.left + bbox.width) return;
    ctx.beginPath(); ctx.setLineDash(dash); ctx.strokeStyle = colour; ctx.lineWidth = devicePixelRatio;
    ctx.moveTo(at, bbox.top); ctx.lineTo(at, bbox.top + bbox.height); ctx.stroke();
  };
  ctx.save();
  for (const failure of failures.slice(0, 2000)) line(toAxis(failure.at), css("bad"), [4, 3]);
  line(toAxis(view.moment), css("text"), []);
  ctx.restore();
};

const onWheel = (chart, event) => {
  const x = chart.posToVal(event.offsetX, "x");
  event.preventDefault();
  if (event.shiftKey) {
    const by = (view.to - view.from) * Math.sign(event.deltaY || event.deltaX) / 10;
    showTime(view.from + by, view.to + by);
  } else zoom(event.deltaY < 0 ? 0.8 : 1.25, x);
};

/* A chart of uPlot over the common time: `series` and `y` are its own, `draw` what else is drawn, `failures` become dashed
   lines. With `onlyX` false dragging also zooms the height, by the chart's onBand. */
const addChart = (body, label, data, series, {height = 260, failures = [], draw = [], y, legend = true, onlyX = true}) => {
  const holder = element("div", {class: "chart", tabindex: "0", role: "img", "aria-label": label});
  body.append(holder);
  const axis = {stroke: () => css("faint"), grid: {stroke: () => css("line"), width: 1}, ticks: {stroke: () => css("line"), width: 1}};
  const chart = new uPlot({
    width: CHART_WIDTH(), height, padding: [8, isNarrow() ? 14 : 44, 0, 0],
    series: [{label: byCalls ? "call" : "seconds", value: u => u.cursor.left >= 0 ? byCalls ? count(Math.round(u.posToVal(u.cursor.left, "x"))) : u.posToVal(u.cursor.left, "x").toFixed(6) : "–"}, ...series],
    scales: {x: {time: false, range: () => [view.from, view.to]}, y},
    axes: [{...axis, space: 90, incrs: byCalls ? DECADES : DECADES.map(n => n / 1e6),
            label: byCalls ? "calls" : isNarrow() ? "seconds" : "seconds since the first CUDA allocation", labelSize: 20, labelFont: "12px system-ui", font: "11px system-ui",
            values: (u, ticks) => ticks.map(t => byCalls ? count(t) : String(+t.toFixed(6)))},
           {...axis, size: isNarrow() ? 64 : 78, incrs: POWERS, space: 34, font: "11px system-ui", values: (u, ticks) => ticks.map(tick)}],
    legend: {show: legend, live: true},
    cursor: {drag: {x: true, y: !onlyX, uni: onlyX ? null : 20, setScale: false}, sync: {key: "time", scales: ["x", null]}, points: {show: false}},
    hooks: {draw: [...draw, verticals(failures)],
      setCursor: [u => { if (legend) u.setLegend({idx: u.cursor.idx}, false); }], /* it is told of new indices alone, and before the cursor has moved */
      setSelect: [u => {
        const {left, top, width, height: tall} = u.select;
        if (width > 4) showTime(u.posToVal(left, "x"), u.posToVal(left + width, "x"));
        if (!onlyX && tall > 4 && u.onBand) u.onBand(u.posToVal(top + tall, "y"), u.posToVal(top, "y"));
        if (width > 0 || tall > 0) u.setSelect({left: 0, top: 0, width: 0, height: 0}, false);
      }]},
  }, data, holder);
  /* The plotting library keeps where a chart lies; whatever opens or closes above one moves it. */
  chart.over.addEventListener("mouseenter", () => chart.syncRect(true));
  chart.over.addEventListener("wheel", event => onWheel(chart, event), {passive: false});
  chart.over.addEventListener("dblclick", () => { if (chart.onBand) chart.onBand(); showTime(...wholeTime()); });
  let pressed = null;
  chart.over.addEventListener("mousedown", event => { pressed = event.clientX; });
  chart.over.addEventListener("click", event => {
    if (Math.abs(event.clientX - pressed) < 4) setMoment(fromAxis(chart.posToVal(chart.cursor.left, "x")));
    holder.focus({preventScroll: true});
  });
  view.charts.push(chart);
  return chart;
};
