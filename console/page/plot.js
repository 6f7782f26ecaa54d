// Calls over time as bars of SVG: a part for each decision, told apart by its pattern, its place and its words.

import { el, fill, svg } from "./dom.js";

export const PARTS = [["allow", "allowed"], ["pending_approval", "held"], ["deny", "denied"], ["error", "failed"]];
const HEIGHT = 180;
const TOP = 18;
const BOTTOM = 20;
const LEFT = 4;
const MOST = 2 ** 53;

/** A count as a number, whatever was answered. */
export const count = (value) => Math.min(MOST, Math.max(0, Math.round(Number(value)) || 0));

/** A figure that shows what `show` is given, as wide as there is room for, until `abort`. */
export function timePlot(abort) {
  let buckets = [];
  let step = "hour";
  let chosen = null;
  const drawing = svg("svg", { class: "frame", role: "img", tabindex: 0, height: HEIGHT,
    "aria-describedby": "plot-chosen", keydown: moved });
  const key = el("ul", { class: "key", "aria-label": "Calls by decision" });
  const told = el("p", { id: "plot-chosen", role: "status", class: "quiet" });
  const table = el("details", {});
  const figure = el("figure", { class: "plot" }, key, drawing, told, table);
  const observer = new ResizeObserver(draw);
  observer.observe(figure);
  abort.addEventListener("abort", () => observer.disconnect());

  function show(given, its) {
    buckets = given.map((one) => ({ start: one.start, counts: PARTS.map(([name]) => count(one.counts?.[name])) }));
    step = its === "day" ? "day" : "hour";
    if (chosen !== null && chosen >= buckets.length) chosen = null;
    fill(key, PARTS.map(([name, word], at) => el("li", {}, swatch(name),
      `${sum(buckets.map((one) => one.counts[at]))} ${word}`)));
    const isOpen = table.open;
    fill(table, el("summary", {}, "As a table"), asTable(buckets, step));
    table.open = isOpen;
    draw();
    tell();
  }

  function moved(event) {
    const last = buckets.length - 1;
    const next = { ArrowLeft: (chosen ?? last + 1) - 1, ArrowRight: (chosen ?? -1) + 1, Home: 0, End: last }[event.key];
    if (next === undefined || last < 0) return;
    event.preventDefault();
    choose(Math.min(last, Math.max(0, next)));
  }

  function choose(at) {
    chosen = at;
    draw();
    tell();
  }

  function tell() {
    fill(told, chosen === null ? "The arrow keys go from bar to bar." : inWords(buckets[chosen], step));
  }

  function draw() {
    const width = Math.max(120, Math.floor(figure.clientWidth));
    const highest = Math.max(1, ...buckets.map((one) => sum(one.counts)));
    const pitch = (width - 2 * LEFT) / Math.max(1, buckets.length);
    const scale = (HEIGHT - TOP - BOTTOM) / highest;
    drawing.setAttribute("width", width);
    drawing.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    drawing.setAttribute("aria-label", `Calls by ${step}, at most ${highest} in one ${step}. The table has all numbers.`);
    fillSvg(drawing, svg("defs", {}, PARTS.map(([name]) => pattern(name))),
      svg("text", { x: LEFT, y: 12 }, `${highest} in one ${step} at most`),
      svg("line", { class: "ground", x1: LEFT, x2: width - LEFT, y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM }),
      buckets.map((one, at) => bar(one, LEFT + at * pitch, pitch, scale, () => choose(at))),
      chosen === null ? null : svg("rect", { class: "chosen", x: LEFT + chosen * pitch, y: TOP, width: pitch,
        height: HEIGHT - TOP - BOTTOM }),
      buckets.length ? [svg("text", { x: LEFT, y: HEIGHT - 5 }, brief(buckets[0].start, step)),
        svg("text", { x: width - LEFT, y: HEIGHT - 5, "text-anchor": "end" }, brief(buckets.at(-1).start, step))] : null);
  }

  return { figure, show };
}

function bar({ counts }, x, pitch, scale, choose) {
  let y = HEIGHT - BOTTOM;
  const gap = pitch > 6 ? 1.5 : 0;
  const parts = counts.map((number, at) => {
    const height = number ? Math.max(2, number * scale) : 0;
    y -= height;
    const place = { x: x + gap, y, width: Math.max(1, pitch - 2 * gap), height };
    return number ? [svg("rect", { class: `part-${PARTS[at][0]}`, ...place }),
      svg("rect", { fill: `url(#pattern-${PARTS[at][0]})`, ...place })] : [];
  });
  return svg("g", {}, parts.flat(), svg("rect", { class: "hit", x, y: 0, width: pitch, height: HEIGHT, click: choose }));
}

function pattern(name, id = `pattern-${name}`) {
  const mark = {
    allow: [],
    pending_approval: [svg("path", { class: "mark", d: "M0 6 L6 0" })],
    deny: [svg("circle", { class: "mark full", cx: 3, cy: 3, r: 1.5 })],
    error: [svg("path", { class: "mark", d: "M0 3 H6 M3 0 V6" })],
  }[name];
  return svg("pattern", { id, width: 6, height: 6, patternUnits: "userSpaceOnUse" }, mark);
}

function swatch(name) {
  const place = { width: 18, height: 12 };
  return svg("svg", { ...place, "aria-hidden": "true" }, svg("defs", {}, pattern(name, `key-${name}`)),
    svg("rect", { class: `part-${name}`, ...place }), svg("rect", { fill: `url(#key-${name})`, ...place }));
}

function asTable(buckets, step) {
  return el("table", {}, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, step === "day" ? "Day" : "Hour"),
    PARTS.map(([, word]) => el("th", { scope: "col", class: "number" }, word)))),
    el("tbody", {}, buckets.map((one) => el("tr", {}, el("th", { scope: "row" }, brief(one.start, step)),
      one.counts.map((number) => el("td", { class: "number" }, number))))));
}

function inWords(one, step) {
  return `${brief(one.start, step)}: ${PARTS.map(([, word], at) => `${one.counts[at]} ${word}`).join(", ")}`;
}

/** The start of an hour in this browser's own zone, or a day, which is one of UTC. */
function brief(start, step) {
  const at = new Date(start);
  if (Number.isNaN(at.getTime())) return "unknown";
  return step === "day" ? at.toLocaleDateString([], { timeZone: "UTC", month: "short", day: "numeric" })
    : at.toLocaleString([], { hourCycle: "h23", weekday: "short", hour: "2-digit", minute: "2-digit" });
}

function sum(numbers) {
  return numbers.reduce((total, one) => total + one, 0);
}

function fillSvg(target, ...children) {
  target.replaceChildren(...svg("g", {}, ...children.flat()).childNodes);
}

/** A bar for a part of 1; the number stands in words beside it. */
export function share(part) {
  return svg("svg", { width: "100%", height: 10, "aria-hidden": "true" },
    svg("rect", { width: `${Math.round(100 * part)}%`, height: 10 }));
}
