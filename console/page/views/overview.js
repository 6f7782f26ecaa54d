// The first page: calls over time, the busiest actions and principals, what is held, and how the gateway is.

import { get } from "../api.js";
import { choice, el, facts, fill, problem } from "../dom.js";
import { poll } from "../live.js";
import { count, share, timePlot } from "../plot.js";
import { plain } from "../visible.js";
import { approvals, tag, told } from "../words.js";
import { capUse } from "./bounds.js";
import { left, ticking } from "./held.js";

const PAUSE = 10_000;
const MOST_NAMES = 8;
const MOST_HELD = 6;
const STEPS = [["hour", "the last 24 hours"], ["day", "the last 30 days"]];

/** Show it. */
export async function overviewView(root, { abort }) {
  let step = "hour";
  let shownText = null;
  const plot = timePlot(abort);
  const wrong = el("div", {});
  const note = el("p", { class: "quiet", role: "status" });
  const busiest = el("div", { class: "two" });
  const used = el("div", {});
  const held = el("div", {});
  const health = el("div", {});
  const chooser = choice("Show", "span", STEPS, step);
  const ask = async () => {
    const asked = step;
    const [summary, status, waiting, caps] = await Promise.all([
      get("/v1/audit/summary", { step: asked }, abort), get("/v1/admin/status", {}, abort),
      get("/v1/approvals", { status: "pending", limit: MOST_HELD }, abort), capsOrReason(abort),
    ]);
    const text = JSON.stringify([summary, status, waiting, caps]);
    if (asked !== step || text === shownText) return;
    shownText = text;
    plot.show(summary.buckets, summary.step);
    fill(note, summary.complete ? null : "Events of an earlier version are still being counted: the numbers will grow.");
    fill(busiest, ranking("Busiest actions", summary.actions, "action_id", (name) => `#/audit?action_id=${name}`),
      ranking("Busiest principals", summary.principals, "principal", (name) => `#/audit?principal=${name}`),
      sums(summary.sums));
    fill(used, caps.reason === undefined ? capUse(caps) : problem(caps.reason));
    fill(held, waiting.approvals.length ? el("ul", { class: "cards" }, waiting.approvals.map(item))
      : el("p", {}, "Nothing waits."));
    fill(health, healthOf(status));
  };
  const shown = () => ask().then(() => fill(wrong), (error) => {
    if (!abort.aborted) fill(wrong, problem(told(error)));
  });
  chooser.querySelector("select").addEventListener("change", (event) => {
    step = event.target.value;
    shownText = null;
    shown();
  });
  root.append(chooser, wrong,
    section("Calls", plot.figure, note), busiest,
    section("Held calls", held, el("p", {}, el("a", { href: "#/held" }, "All held calls"))),
    section("Use of caps", used), section("Health", health));
  ticking(held, abort);
  poll(ask, PAUSE, abort, (why) => fill(wrong, why === null ? null : problem(why)));
}

// The rest of the page is worth showing without them.
async function capsOrReason(abort) {
  try {
    return await get("/v1/admin/policy/caps", {}, abort);
  } catch (error) {
    if (abort.aborted) throw error;
    return { reason: told(error) };
  }
}

function section(title, ...children) {
  return el("section", { class: "card" }, el("h2", {}, title), ...children);
}

function ranking(title, counted, name, link) {
  const most = Math.max(1, ...counted.map((one) => count(one.count)));
  const rows = counted.slice(0, MOST_NAMES);
  return el("section", { class: "card" }, el("table", {}, el("caption", {}, title),
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Name"), el("th", { scope: "col", class: "number" }, "Calls"),
      el("th", { scope: "col" }, el("span", { class: "hidden" }, "Share of the busiest")))),
    el("tbody", {}, rows.map((one) => el("tr", {},
      el("th", { scope: "row" }, one[name] === null ? "others"
        : el("a", { href: link(encodeURIComponent(one[name])) }, plain(one[name]))),
      el("td", { class: "number" }, count(one.count)),
      el("td", { class: "share" }, share(count(one.count) / most)))))),
    rows.length ? null : el("p", { class: "quiet" }, "None."));
}

function sums(kept) {
  return kept.length === 0 ? null : el("section", { class: "card" }, el("table", {}, el("caption", {}, "Sums of kept values"),
    el("thead", {}, el("tr", {}, ["Action", "Value"].map((one) => el("th", { scope: "col" }, one)),
      el("th", { scope: "col", class: "number" }, "Sum"))),
    el("tbody", {}, kept.map((one) => el("tr", {}, el("th", { scope: "row" }, plain(one.action_id)),
      el("td", {}, plain(one.pointer)), el("td", { class: "number" }, plain(one.sum)))))));
}

function item(one) {
  return el("li", { "data-id": one.approval_id, class: "card" },
    el("h3", {}, el("a", { href: `#/held/${one.approval_id}` }, one.action_id)),
    one.summary ? el("p", { class: "summary" }, one.summary) : null,
    el("p", { class: "tags" }, tag(one.risk_level ?? "risk unknown"),
      el("span", { class: "left", "data-until": one.expires_at }, left(one.expires_at))),
    el("p", {}, "asked by ", el("strong", {}, one.principal ?? "unknown")),
    one.approvals ? el("p", {}, approvals(one.approvals)) : null);
}

function healthOf(status) {
  return facts([["state", [tag(status.status)]], ["running calls", status.in_flight_executions],
    ["held calls", status.pending_approvals ?? "unknown"], ["unresolved calls", status.unresolved_intents ?? "unknown"],
    ["room for evidence", status.ledger_volume.is_full ? "none" : "yes"],
    ["ended again and again", status.crash_loops.length ? status.crash_loops.join(", ") : "none"],
    ["less safe than production", status.weakened.length ? status.weakened.join(", ") : "nothing"]],
  { class: "facts brief wide" });
}
