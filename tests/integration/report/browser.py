"""Pages as a browser has drawn them; and what a script in them says, after it has done what a user would."""

import html
import json
import re
import shutil
import subprocess

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")

# For scripts: a mouse over, or a click on, a chart, at a value of each axis.
HELPERS = """
const pause = ms => new Promise(done => setTimeout(done, ms));
const waitFor = async condition => { while (!condition()) await pause(50); };  // the page's time ends it
const over = async (chart, x, y, kinds = ["mousemove"]) => {
  const box = chart.over.getBoundingClientRect();
  const place = {bubbles: true, clientX: box.left + chart.valToPos(x, "x"), clientY: box.top + chart.valToPos(y, "y")};
  for (const kind of ["mouseenter", "mousemove", ...kinds]) { chart.over.dispatchEvent(new MouseEvent(kind, place)); await pause(60); }
  return chart.root.parentNode.querySelector(".tip").textContent;
};
const chartOf = label => view.charts.find(chart => chart.root.parentNode.getAttribute("aria-label") === label);
const key = (name, target = document) => target.dispatchEvent(new KeyboardEvent("keydown", {key: name, bubbles: true}));
"""


def run(*arguments, **more):
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, **more)
    if done.returncode:
        raise AssertionError(f"{arguments}: {done.returncode}: {done.stderr}")
    return done.stdout


class Page:
    """`place`: what stands behind the address. `script`: an async function's body, whose result is `answer`."""

    def __init__(self, folder, path, place="", script=None):
        if script:
            with open(path, encoding="utf-8") as file:
                text = file.read()
            path = f"{folder}/asked.html"
            with open(path, "w", encoding="utf-8") as file:
                file.write(text + "<script>" + HELPERS + "(async () => { const answer = await (async () => {" + script
                           + "})(); document.body.dataset.answer = JSON.stringify(answer); })()"
                           ".catch(error => { document.body.dataset.answer = JSON.stringify(String(error)); });</script>")
        self.text = run(BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu",
                        f"--user-data-dir={folder}/profile", "--window-size=1240,2000", "--virtual-time-budget=6000",
                        "--dump-dom", f"file://{path}{place}")
        answer = re.search(r'<body[^>]* data-answer="([^"]*)"', self.text)
        self.answer = json.loads(html.unescape(answer[1])) if answer else None
        self.text = re.sub(r'<script.*?</script>', "", self.text, flags=re.S)  # what was drawn, not what from

    def figure(self, name):
        return int(re.search(rf'data-key="{name}" data-value="(\d+)"', self.text)[1])

    def drawn(self, what):
        return float(re.search(rf'data-{what}="([0-9.]+)"', self.text)[1])

    def words(self):
        return html.unescape(re.sub("<[^>]*>", " ", self.text))
