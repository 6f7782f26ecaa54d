// One call on one page: what was decided and by which rule, what came of it, and what proves it.

import { get } from "../api.js";
import { el, facts, long } from "../dom.js";
import { asciiJson, plain } from "../visible.js";
import { tag } from "../words.js";
import { eventRow } from "./events.js";
import { explainLink } from "./explain.js";

const MOST = 100;

/** Show it. */
export async function callView(root, { abort, argument }) {
  const { events } = await get("/v1/audit/events", { trace_id: argument, limit: MOST }, abort);
  const member = (name) => events.find((one) => one[name] !== undefined && one[name] !== null)?.[name];
  if (!events.length) {
    root.append(el("p", {}, `No event has the trace ${argument}.`));
    return;
  }
  root.append(el("p", { class: "tags" }, tag(member("decision") ?? "unknown"), tag(member("risk_level") ?? "risk unknown"),
    el("strong", {}, `${plain(member("action_id"))} ${plain(member("action_version"))}`)),
    el("section", { class: "card", "aria-labelledby": "why" }, el("h2", { id: "why" }, "Why"), facts([
      ["asked by", `${plain(member("principal"))}, session ${plain(member("session_id"))}`],
      ["decided by", `rule ${plain(member("policy_rule"))}, policy ${plain(member("policy_version"))}`],
      ...[["deny_reason", "denied for"], ["error_code", "failed with"], ["reason", "because"],
        ["standing_id", "lifted by"], ["approved_by", "approved by"], ["allowed_sinks", "effects"]]
        .filter(([name]) => member(name)).map(([name, label]) => [label, plain(member(name))]),
      ["trace", argument]])));
  if (member("principal") && member("action_id")) {
    root.append(el("p", {}, el("a", { href: explainLink(member("principal"), member("action_id")) },
      "What policy would say of a call like this now")));
  }
  if (member("approval_id")) {
    root.append(el("p", {}, "Held as ", el("a", { href: `#/held/${member("approval_id")}` }, member("approval_id"))));
  }
  if (member("receipt_id")) root.append(await receiptCard(member("receipt_id"), abort));
  root.append(el("section", { "aria-labelledby": "events" }, el("h2", { id: "events" }, "Events"),
    el("ol", { class: "events", "aria-label": "Events of this call, newest first" }, events.map(eventRow))));
}

async function receiptCard(id, abort) {
  const receipt = await get(`/v1/receipts/${id}`, {}, abort);
  const why = receipt.normalized_result.reason ?? receipt.normalized_result.summary;
  return el("section", { class: "card", "aria-labelledby": "receipt" }, el("h2", { id: "receipt" }, "Receipt"),
    facts([["receipt", receipt.receipt_id],
      ["signature", [tag(receipt.signature_status), " (says the gateway)"]],
      ["result", [tag(receipt.normalized_result.kind), why ? ` ${why}` : ""]],
      ["verification", [tag(receipt.verification_outcome.status)]],
      ["approval signed", receipt.approval?.signature ? `by ${receipt.approval.approved_by}` : "no"]]),
    el("details", {}, el("summary", {}, "Every member"), facts(Object.entries(receipt).map(([name, value]) =>
      [name, el("code", {}, long(asciiJson(value), name))]))));
}
