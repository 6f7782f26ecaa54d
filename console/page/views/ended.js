// What came of a held call: it ran, it was denied, or another operator or its time has ended it.

import { el, facts, long } from "../dom.js";
import { asciiJson, plain } from "../visible.js";
import { moment, tag } from "../words.js";

/** A call that this page approved, and that ran. */
export function ran(answer) {
  const isGood = answer.verification.is_fully_successful;
  return el("section", { class: "card done", "aria-labelledby": "done", tabindex: -1 },
    el("h2", { id: "done" }, isGood ? "Approved, ran, and as it should be" : "Approved, and ran"),
    facts([["verification", [tag(answer.verification_outcome)]],
      ["receipt", [el("a", { href: `#/call/${answer.trace_id}` }, answer.receipt_id)]],
      ["approved by", plain(answer.approval?.approved_by)],
      ["signed", "with the key of this browser"],
      ["output", el("code", {}, long(asciiJson(answer.output), "the output"))]]));
}

/** A call that this page denied. */
export function refused(answer) {
  return el("section", { class: "card done", "aria-labelledby": "done", tabindex: -1 },
    el("h2", { id: "done" }, "Denied; nothing ran"),
    facts([["denied by", answer.denied_by], ["reason", plain(answer.deny_reason)],
      ["trace", [el("a", { href: `#/call/${answer.trace_id}` }, answer.trace_id)]]]));
}

/** A call as the gateway shows it once it is decided. */
export function outcome(detail) {
  return el("section", { class: "card done", "aria-label": "What came of it" }, facts([
    ["state", [tag(detail.state)]], ["decided by", plain(detail.claimed_by)],
    ["at", [moment(detail.completed_at ?? detail.claimed_at)]],
    ...(detail.deny_reason ? [["denied for", detail.deny_reason]] : []),
    ...(detail.error_code ? [["failed with", detail.error_code]] : []),
    ["signed", detail.approval_signature ? "by the operator who decided" : "no"],
    ["receipt", detail.receipt_id ? [el("a", { href: `#/call/${detail.trace_id}` }, detail.receipt_id)] : "none"]]));
}
