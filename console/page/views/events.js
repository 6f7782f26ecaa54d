// Audit events as rows.

import { el, facts, long } from "../dom.js";
import { asciiJson, plain } from "../visible.js";
import { moment, tag } from "../words.js";

/** One event: a line that opens to all of it. */
export function eventRow(event) {
  const kind = event.action_id && event.event_type !== "ActionCall" ? event.event_type : null;
  const why = [kind, event.deny_reason ?? event.error_code ?? event.policy_rule ?? event.reason];
  return el("li", { class: "event", "data-id": event.event_id }, el("details", {},
    el("summary", {},
      el("span", { class: "when" }, moment(event.timestamp)),
      el("span", { class: "what" }, tag(event.decision ?? event.event_type, event.decision ?? ""), " ",
        el("strong", {}, event.action_id ?? event.event_type)),
      el("span", { class: "who" }, plain(event.principal)),
      el("span", { class: "why" }, short([...why, keptText(event)].filter(Boolean).join(" \u00b7 ")))),
    event.trace_id ? el("p", {}, el("a", { href: `#/call/${event.trace_id}` }, "The whole call")) : null,
    facts(Object.entries(event).map(([name, value]) => [name, el("code", {}, long(asciiJson(value), name))]))));
}

// The kept values of an event in a line, or why they are not all there.
function keptText(event) {
  if (!event.kept_values) return null;
  if (event.kept_state !== "whole") return `kept values ${event.kept_state}`;
  return Object.entries(event.kept_values).map(([pointer, value]) => `${pointer}=${plain(value)}`).join(" ");
}

function short(text) {
  const whole = String(text);
  return whole.length > 160 ? `${whole.slice(0, 160)}… (${whole.length - 160} more)` : whole;
}
