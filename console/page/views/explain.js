// Why: what was decided about a call, by its trace, and what the policy in force would decide about one now.

import { post } from "../api.js";
import { area, el, facts, field, fill, problem } from "../dom.js";
import { plain } from "../visible.js";
import { tag, told } from "../words.js";

const FIELDS = [["principal", "Principal"], ["action_id", "Action"]];

/** Show both questions. The query of the address fills them. */
export async function explainView(root, { abort, query }) {
  const found = el("div", { role: "status" });
  const form = el("form", { class: "card", submit: (event) => {
    event.preventDefault();
    ask(found, Object.fromEntries(new FormData(form)), abort);
  } },
    el("h2", {}, "What would be decided now"),
    FIELDS.map(([name, label]) => field(label, { id: name, name, maxlength: 256, required: true,
      value: query.get(name) ?? "" })),
    area("Request", { id: "request", name: "request", rows: 4 },
      "A JSON object. Left empty, it is {}: most policies ask for the targets that a request leads to."),
    field("Calls left", { id: "calls", name: "calls", inputmode: "numeric", pattern: "[0-9]{0,15}" },
      "Left empty, calls are not counted."),
    el("div", { class: "buttons" }, el("button", { type: "submit", class: "main" }, "Explain")));
  root.append(byTrace(), form, found);
  if (FIELDS.every(([name]) => query.get(name))) form.requestSubmit();
}

function byTrace() {
  return el("form", { class: "card", role: "search", submit: (event) => {
    event.preventDefault();
    const trace = event.target.elements.trace.value.trim();
    if (trace) location.hash = `#/call/${encodeURIComponent(trace)}`;
  } },
    el("h2", {}, "What was decided"),
    field("Trace", { id: "trace", name: "trace", maxlength: 256 },
      "The call's own page says by which rule, why, and what came of it."),
    el("div", { class: "buttons" }, el("button", { type: "submit" }, "Show the call")));
}

async function ask(found, given, abort) {
  try {
    const form = JSON.stringify({
      principal: given.principal.trim(), action_id: given.action_id.trim(),
      calls_remaining: given.calls.trim() ? Number(given.calls) : undefined,
    });
    const answer = await post("/v1/admin/policy/explain", withRequest(form, given.request), abort);
    fill(found, el("section", { class: "card", "aria-labelledby": "would" },
      el("h2", { id: "would" }, `${plain(answer.principal)} calling ${plain(answer.action_id)}`),
      el("p", { class: "tags" }, tag(answer.decision)), facts([
        ["rule", answer.rule ?? "policy is not asked"],
        ...[["error_code", "refused with"], ["reason", "because"], ["policy_version", "policy"],
          ["request_hash", "request"]].filter(([name]) => answer[name]).map(([name, label]) => [label, answer[name]])]),
      answer.assumed.length ? el("p", {}, "Assumed, since nobody made this call:") : null,
      el("ul", {}, answer.assumed.map((one) => el("li", {}, one))),
      el("p", {}, el("a", { href: `#/policy/${encodeURIComponent(answer.principal)}` }, "What this principal may call"))));
  } catch (error) {
    if (!abort.aborted) fill(found, problem(told(error)));
  }
}

/** The form with the request as it was typed: what JSON.parse drops or rounds may be what a call is refused for. */
function withRequest(form, text) {
  if (!text.trim()) return form;
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    value = null;
  }
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    throw Object.assign(new Error("invalid_request"), { code: "invalid_request",
      answer: { message: "request: must be a JSON object" } });
  }
  return `${form.slice(0, -1)},"request":${text}}`;
}

/** The address that asks about a call like this. */
export const explainLink = (principal, action) => `#/explain?principal=${encodeURIComponent(principal)}`
  + `&action_id=${encodeURIComponent(action)}`;
