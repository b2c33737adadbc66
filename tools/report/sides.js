/* Begins the page; with two recordings in it, or another report chosen, two pages stand side by side on common scales. */
const recordings = document.querySelectorAll(".recording");

/* This page with one recording, as it was before anything was drawn. */
const pageOf = recording => {
  const copy = document.documentElement.cloneNode(true);
  for (const node of copy.querySelectorAll("#tiles, #main, #choice, #about")) node.replaceChildren();
  for (const node of copy.querySelectorAll(".recording, .run, dialog, #beside")) node.remove();
  const holder = partOfPage("script", "recording", recording.textContent);
  holder.type = "text/plain";
  copy.querySelector("body").append(holder);
  /* The script that begins it all comes last. */
  copy.querySelector("body").append(copy.querySelector("#begin"));
  return "<!doctype html>" + copy.outerHTML;
};
const partOfPage = (name, kind, text) => { const node = document.createElement(name); node.className = kind; node.textContent = text; return node; };

const standBeside = pages => {
  const frames = pages.map((page, i) => { const frame = partOfPage("iframe", "half", ""); frame.title = i ? "the other report" : "this report"; frame.srcdoc = page; return frame; });
  const told = new Map();
  addEventListener("message", ({source, data}) => {
    const one = frames.find(frame => frame.contentWindow === source), other = frames.find(frame => frame !== one);
    if (!one) return;
    if (data.most === undefined) { other.contentWindow.postMessage(data, "*"); return; }
    told.set(one, data);
    if (told.size < 2) return;
    const [a, b] = told.values(), common = {most: Math.max(a.most, b.most), span: Math.max(a.span, b.span), clock: a.clock === b.clock ? a.clock : ""};
    for (const frame of frames) frame.contentWindow.postMessage(common, "*");
  });
  document.body.replaceChildren(...frames);
  document.body.className = "halves";
};

if (recordings.length > 1) standBeside([...recordings].map(pageOf));
else {
  document.body.append(partOfPage("script", "run", document.getElementById("code").textContent));
  document.getElementById("other")?.addEventListener("change", async event => {
    const own = pageOf(recordings[0]);
    standBeside([own, await event.target.files[0].text()]);
  });
}
