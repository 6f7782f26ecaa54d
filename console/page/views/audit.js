// The audit log: search, and whether its chain and its checkpoint hold.

import { get } from "../api.js";
import { choice, el, facts, field, fill, problem, say } from "../dom.js";
import { plain } from "../visible.js";
import { age, moment, tag, told } from "../words.js";
import { eventRow } from "./events.js";

const PAGE = 50;
const LONGEST = 1000; // events of one page, as the gateway has it
const PAGES = 20;
const FIELDS = [["trace_id", "Trace"], ["principal", "Principal"], ["action_id", "Action"], ["session_id", "Session"],
  ["event_type", "Event type"], ["kept", "Kept value (/pointer=value)"]];
const DECISIONS = [["", "any"], ["allow", "allow"], ["deny", "deny"], ["error", "error"],
  ["pending_approval", "pending approval"]];

/** Show the search. The query of the address fills it. */
export async function auditView(root, { abort, query }) {
  const found = el("ol", { class: "events", "aria-label": "Events found, newest first" });
  const said = el("div", { role: "status" });
  const more = el("button", { type: "button", hidden: true, click: () => search(true) }, "Older ones");
  let filters = {};
  let at = {}; // how far the search has come

  // A page of leases alone shows nothing: look further, within bounds.
  async function search(isMore) {
    try {
      if (!isMore) {
        fill(found);
        at = { before: filters.before, size: PAGE, last: null, seen: new Set() };
      }
      const { leases, ...asked } = filters;
      const hidesLeases = !leases && !asked.event_type;
      let isLast = false;
      for (let page = 0; page < PAGES && !isLast; page += 1) {
        const { events } = await get("/v1/audit/events", { ...asked, limit: at.size, before: at.before }, abort);
        const fresh = events.filter((one) => !at.seen.has(one.event_id));
        const rows = fresh.filter((one) => !(hidesLeases && one.event_type === "LeaseIssued")).map(eventRow);
        found.append(...rows);
        // The longest page is shorter than asked for where its events or their kept values are large.
        const mayBeCut = at.size === LONGEST && fresh.length;
        isLast = events.length < at.size && !mayBeCut;
        advance(at, events);
        if (rows.length) break;
      }
      more.hidden = isLast;
      fill(said, el("p", { class: "quiet" }, found.childElementCount ? `${found.childElementCount} events` : "None found."));
    } catch (error) {
      if (!abort.aborted) fill(said, problem(told(error)));
    }
  }

  const form = el("form", { class: "search card", role: "search", submit: (event) => {
    event.preventDefault();
    filters = Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, value.trim()]));
    const { kept, ...others } = filters;
    filters = others;
    if (kept) {
      const at = kept.indexOf("=");
      filters[`kept.${at < 0 ? kept : kept.slice(0, at)}`] = at < 0 ? "" : kept.slice(at + 1);
    }
    filters.after = instant(filters.after);
    filters.before = instant(filters.before);
    search(false);
  } },
    FIELDS.map(([name, label]) => field(label, { id: name, name, maxlength: 256, value: query.get(name) ?? "" })),
    choice("Decision", "decision", DECISIONS, query.get("decision") ?? ""),
    field("From (UTC)", { id: "after", name: "after", type: "datetime-local", step: 1, value: query.get("after") ?? "" }),
    field("Until (UTC)", { id: "before", name: "before", type: "datetime-local", step: 1, value: query.get("before") ?? "" }),
    choice("Leases", "leases", [["", "hidden"], ["shown", "shown"]], query.get("leases") ?? ""),
    el("div", { class: "buttons" }, el("button", { type: "submit", class: "main" }, "Search")));
  root.append(await chain(abort), form, said, found, el("div", { class: "buttons" }, more));
  form.requestSubmit();
}

// `before` is exclusive, and events may share a millisecond: the next page begins a millisecond above the last event.
function advance(at, events) {
  const last = events.at(-1)?.timestamp;
  if (last === undefined) return;
  const time = Date.parse(last);
  if (last === at.last) at.size = LONGEST; // a whole page was one millisecond
  else Object.assign(at, { last, seen: new Set(), before: isNaN(time) ? last : new Date(time + 1).toISOString() });
  for (const one of events) if (one.timestamp === last) at.seen.add(one.event_id);
}

// What a datetime field holds, as the gateway takes it.
function instant(local) {
  return local ? `${local.length === 16 ? `${local}:00` : local}Z` : "";
}

async function chain(abort) {
  const result = el("div", { role: "status" });
  const signed = el("div", {});
  const button = el("button", { type: "button", click: async () => {
    button.disabled = true;
    fill(result, el("p", {}, "Every event is compared with the one before and with the tree; this may take minutes …"));
    try {
      const report = await get("/v1/audit/verify", {}, abort);
      say(report.intact ? "The chain is intact." : "The chain is broken.");
      fill(result, el("p", { class: "tags" }, tag(report.intact ? "intact" : "broken")), facts([
        ["checked", `${report.events_checked} of ${report.total_events} events, ${report.verified_links} links`],
        ...(report.intact ? [] : [["broken at", plain(report.broken_at)], ["reason", plain(report.reason)]]),
        ["tree", `${report.size} leaves, root ${plain(report.root)}`]]));
    } catch (error) {
      if (!abort.aborted) fill(result, problem(told(error)));
    }
    button.disabled = false;
  } }, "Check the whole chain");
  const { checkpoint } = await get("/v1/admin/status", {}, abort);
  fill(signed, checkpoint === null ? el("p", {}, "No checkpoint is signed yet.") : facts([
    ["log", checkpoint.origin],
    ["checkpoint", [`${checkpoint.size} entries, `, moment(checkpoint.time), ` (${age(checkpoint.age_seconds)} ago)`]],
    ["root", checkpoint.root],
    ...checkpoint.witnesses.map((one) => [`witness ${one.name}`, one.has_cosigned ? "has cosigned it"
      : `has not: ${plain(one.problem)}`])]));
  return el("section", { class: "card", "aria-labelledby": "chain" }, el("h2", { id: "chain" }, "Chain and checkpoint"),
    signed, result, el("div", { class: "buttons" }, button));
}
