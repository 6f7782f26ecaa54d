// The line above every view: how the gateway is, what waits, and how far its log is signed.

import { el, fill, say } from "./dom.js";
import { age, tag } from "./words.js";

/** Keeps the line in `target`. */
export function stateLine(target) {
  let held = null;
  let size = 0;
  return {
    show(status) {
      const waiting = status.pending_approvals;
      if (waiting !== null && held !== null && waiting > held) say(`${waiting} calls are held.`);
      held = waiting;
      const shrunk = (status.checkpoint?.size ?? size) < size;
      size = Math.max(size, status.checkpoint?.size ?? 0);
      fill(target, tag(status.status),
        part("held", waiting ?? "unknown", "#/held"),
        part("running", status.in_flight_executions),
        status.unresolved_intents ? part("unresolved", status.unresolved_intents) : null,
        checkpoint(status.checkpoint),
        shrunk ? tag("log is shorter than it was", "broken") : null,
        status.crash_loops.map((one) => tag(`${one} ends again and again`, "broken")),
        status.ledger_volume.is_full ? tag("no room for evidence", "broken") : null,
        status.weakened.length ? el("details", { class: "weakened" }, el("summary", {}, "weakened"),
          el("p", {}, `Less safe than production asks for: ${status.weakened.join(", ")}.`)) : null);
    },
    failed(why) {
      if (why !== null) fill(target, tag("no answer", "broken"), el("span", {}, why));
    },
  };
}

function checkpoint(last) {
  if (last === null) return part("log", "no checkpoint yet", "#/audit");
  const missing = last.witnesses.filter((one) => !one.has_cosigned).length;
  const by = last.witnesses.length ? `, ${last.witnesses.length - missing} of ${last.witnesses.length} witnesses` : "";
  return part("log", `${last.size} entries, signed ${age(last.age_seconds)} ago${by}`, "#/audit");
}

function part(name, value, link = null) {
  const inner = [el("span", { class: "name" }, name), " ", el("span", { class: "value" }, value)];
  return link === null ? el("span", { class: "part" }, inner) : el("a", { class: "part", href: link }, inner);
}
