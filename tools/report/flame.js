/* What is held, by call stack: the outermost frame on top, widths as bytes. */
const ROW = 19, NARROWEST = 0.0015;

/* Nodes that are drawn, with their place in parts of the whole. */
const layFlame = root => {
  const placed = [], lay = (node, left, depth) => {
    const width = node.bytes / root.bytes;
    if (width < NARROWEST) return;
    placed.push({node, left, width, depth});
    let at = left;
    for (const child of [...node.children.values()].sort((a, b) => b.bytes - a.bytes)) { lay(child, at, depth + 1); at += child.bytes / root.bytes; }
  };
  if (root.bytes) lay(root, 0, 0);
  return placed;
};

const wordsOfNode = (node, root) => `${node.name}: ${bytes(node.bytes)}, ${share(node.bytes / root.bytes)}`;

/* The node's first child, its parent, or what comes before or after it below the same parent. */
const neighbour = (node, key) => {
  const around = node.parent ? [...node.parent.children.values()].sort((a, b) => b.bytes - a.bytes) : [node];
  return {ArrowUp: node.parent, ArrowDown: [...node.children.values()].sort((a, b) => b.bytes - a.bytes)[0],
    ArrowLeft: around[around.indexOf(node) - 1], ArrowRight: around[around.indexOf(node) + 1]}[key];
};

const newFlame = () => {
  const box = element("div", {class: "flame", role: "tree", "aria-label": "flame graph"}), says = element("span", {class: "faint"});
  const search = element("input", {type: "search", placeholder: "search frames", "aria-label": "search frames"}), back = element("button", {type: "button"}, "whole");
  const tip = element("div", {class: "tip", hidden: ""});
  box.addEventListener("mouseleave", () => { tip.hidden = true; });
  const flame = {whole: null, root: null, parts: new Map()};
  const matches = node => search.value && node.name.toLowerCase().includes(search.value.toLowerCase());
  /* Bytes below matching frames, each once. */
  const matched = node => matches(node) ? node.bytes : sum([...node.children.values()].map(matched));
  const focus = node => flame.parts.get(node)?.focus();
  const zoomTo = node => { flame.root = node; draw(); focus(node); };
  const onFlameKey = (event, node) => {
    const next = neighbour(node, event.key);
    if (next) focus(next);
    else if (event.key === "Enter" || event.key === " ") zoomTo(node);
    else if (event.key === "Backspace" || event.key === "Escape") zoomTo(flame.whole);
    else return;
    event.preventDefault(); event.stopPropagation();
  };
  const draw = () => {
    tip.hidden = true;
    const placed = layFlame(flame.root);
    flame.parts = new Map();
    box.style.height = (placed.reduce((most, part) => Math.max(most, part.depth), 0) + 1) * ROW + "px";
    box.replaceChildren(...placed.map(({node, left, width, depth}, i) => {
      const part = element("div", {role: "treeitem", tabindex: i ? "-1" : "0", "aria-label": wordsOfNode(node, flame.whole), "data-bytes": Math.round(node.bytes), class: matches(node) ? "found" : "",
        style: `left:${100 * left}%;width:${100 * width}%;top:${depth * ROW}px;--tint:${PALETTE[[...node.name].reduce((a, c) => (a * 31 + c.charCodeAt(0)) % 997, 7) % PALETTE.length]}`}, node.name);
      part.addEventListener("click", () => zoomTo(node));
      part.addEventListener("mousemove", event => showTip(tip, wordsOfNode(node, flame.whole), event));
      part.addEventListener("keydown", event => onFlameKey(event, node));
      flame.parts.set(node, part);
      return part;
    }));
    const found = search.value ? matched(flame.whole) : 0;
    says.textContent = ` ${wordsOfNode(flame.root, flame.whole)}` + (search.value ? `; below "${search.value}": ${bytes(found)}, ${share(found / flame.whole.bytes)}` : "");
    back.hidden = flame.root === flame.whole;
  };
  search.addEventListener("input", draw);
  back.addEventListener("click", () => zoomTo(flame.whole));
  flame.show = held => { flame.root = flame.whole = treeOf(held); if (flame.whole.bytes) draw(); else box.replaceChildren(); };
  flame.body = element("div", {}, search, back, says, box, tip);
  return flame;
};
