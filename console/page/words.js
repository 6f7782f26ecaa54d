// What people read of times, states and refusals.

import { el } from "./dom.js";

const REFUSALS = {
  console_unreachable: "The console's own process does not answer. Is gateway console still running?",
  foreign_request: "The console refused the request as another site's. Open the address that gateway console printed.",
  gateway_unreachable: "The console can't reach the gateway.",
  link_used: "This link has been used, or is another console's.",
  gateway_timeout: "The gateway did not answer in time. What was asked may still happen: look again.",
  gateway_not_understood: "What the gateway answered could not be read.",
  not_understood: "What was answered could not be read.",
  locked: "Locked: sign in again.",
  shown_mismatch: "Not signed: what is shown does not hash to its shown_hash. Something between the gateway and this "
    + "page has changed it. Decide with gatectl, and find out what.",
  invalid_operator_token: "The gateway does not know this API key. Has its configuration been reloaded with the lines "
    + "of this key?",
  invalid_dpop: "The gateway refuses the proof: the key in this browser is not the one that its configuration names "
    + "(dpop_jkt), or this machine's clock is off by more than a minute.",
  replay_detected: "The gateway has seen this proof before. Try again.",
  rate_limit_exceeded: "Too many requests at the moment; this page waits.",
  approval_not_found: "It is decided already, has expired, or never was.",
  plan_integrity: "Not run: the plan, its module or the epoch is not what it was when the call was held.",
  approval_signature_required: "The gateway wants the operator's signature and got none.",
  already_approved_by_you: "You have approved it already; another operator must approve it, too.",
  role_required: "Your operator lacks the role that this needs.",
  own_request: "The call is your own: another operator must approve it.",
  invalid_approval_signature: "The gateway does not accept the signature. Is this machine's clock right?",
  action_execution_failed: "Approved, and the call failed.",
  principal_not_found: "No such principal.",
  session_not_found: "That session has ended, or never was.",
  too_many_revoked_sessions: "As many sessions are revoked as every front can be told. Revoke everything with gatectl.",
  action_not_found: "No such action.",
  receipt_not_found: "No such receipt.",
};

const HOURS = { hourCycle: "h23" };

/** What went wrong, for people. */
export function told(error) {
  if (error.code === undefined) return `This page failed: ${error.message}`;
  const more = [error.answer?.reason, error.answer?.deny_reason, error.answer?.message].filter(Boolean);
  const about = [error.status ? `${error.status} ${error.code}` : error.code, ...more];
  if (error.traceId) about.push(`trace ${error.traceId}`);
  return `${REFUSALS[error.code] ?? "The gateway refused."} (${about.join(" · ")})`;
}

/** A time as the gateway writes it, shown in this browser's own zone. */
export function moment(text) {
  const at = new Date(text ?? "");
  if (Number.isNaN(at.getTime())) return el("span", {}, text || "-");
  const isToday = at.toDateString() === new Date().toDateString();
  const shown = isToday ? at.toLocaleTimeString([], HOURS) : at.toLocaleString([], HOURS);
  return el("time", { datetime: text, title: text }, shown);
}

/** How many of several approvals are given, of which groups they must be, and by whom. */
export function approvals({ given, needed, groups, by }) {
  const of = Object.entries(groups).map(([name, number]) => `${number} of ${name}`).join(", ");
  return `${given} of ${needed} approvals${of ? ` (${of})` : ""}${by.map((one) => ` · ${one.approved_by}`).join("")}`;
}

/** Seconds as minutes and seconds. */
export function minutes(seconds) {
  const whole = Math.max(0, Math.ceil(seconds));
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}

/** How long, roughly. */
export function age(seconds) {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return seconds < 172800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86400)} d`;
}

/** A word with a colour that says no more than the word. */
export function tag(word, kind = word) {
  return el("span", { class: `tag ${KINDS[kind] ?? ""}` }, word || "-");
}

const KINDS = {
  allow: "good", approved: "good", verified: "good", ok: "good", intact: "good", success: "good", low: "good",
  deny: "bad", denied: "bad", error: "bad", failed: "bad", critical: "bad", broken: "bad", degraded: "bad",
  pending_approval: "warn", pending: "warn", claimed: "warn", high: "warn", draining: "warn", expired: "warn",
};
