// One held call: what will happen, exactly; who asks and why; what proves it; and the decision, bound to what is shown.
//
// What is signed is the very answer that the facts here were made of. It is never replaced while the page shows it:
// only the state above it follows the gateway.

import { decide, get, isAsShown } from "../api.js";
import { confirmed, el, facts, field, fill, long, problem, say } from "../dom.js";
import { poll } from "../live.js";
import { asciiJson, plain, visible } from "../visible.js";
import { approvals, moment, tag, told } from "../words.js";
import { outcome, ran, refused } from "./ended.js";
import { left, ticking } from "./held.js";

const PAUSE = 3000;
const LOST = new Set(["console_unreachable", "gateway_unreachable", "gateway_not_understood", "gateway_timeout",
  "not_understood"]); // the answer, perhaps not the request
const UNDER_WAY = new Set(["pending", "claimed"]); // states that another one follows

/** Show one. */
export async function heldCallView(root, { abort, argument }) {
  const path = `/v1/approvals/${argument}`;
  const detail = await get(path, {}, abort);
  const state = el("p", { class: "tags" });
  const decision = el("div", {});
  const wrong = el("div", {});
  fill(root.querySelector("h1"), detail.action_id, " ", detail.action_version ?? "");
  document.title = `${visible(detail.action_id)} – Gateway console`;
  const about = await description(detail, abort);
  root.append(state, el("section", { class: "card", "aria-label": "What will happen" },
    facts([...(detail.summary ? [["summary", detail.summary]] : []), ...about, ...effects(detail)]),
    request(detail)), el("section", { class: "card", "aria-label": "Who asks" }, facts(asker(detail))), decision, wrong,
  everything(detail));
  showState(state, detail);
  ticking(state, abort);
  if (!UNDER_WAY.has(detail.state)) {
    fill(decision, outcome(detail));
    return;
  }
  const isSame = await isAsShown(detail);
  const watching = new AbortController();
  abort.addEventListener("abort", () => watching.abort());
  let shownText = null;
  let failed = null;
  // Look what became of it; true when it is decided. Something else than a decision of this page may have ended it.
  const look = async (error = failed) => {
    let now;
    try {
      now = await get(path, {}, abort);
    } catch (refused) {
      if (refused.code !== "approval_not_found") throw refused;
      now = { ...detail, state: "expired" };
    }
    if (now.state === "pending" || watching.signal.aborted) return false;
    failed = error;
    if (!UNDER_WAY.has(now.state)) watching.abort(); // a call that runs is followed to its end
    const text = JSON.stringify(now);
    if (text === shownText) return true;
    shownText = text;
    showState(state, now);
    fill(decision, error === null ? null : problem(told(error)), outcome(now));
    return true;
  };
  const settled = (name, shown) => {
    watching.abort();
    showState(state, { ...detail, state: name });
    fill(decision, shown);
    shown.focus();
  };
  if (detail.state === "claimed") fill(decision, outcome(detail));
  else fill(decision, isSame ? form(detail, look, settled) : unsigned(detail));
  poll(async () => {
    if (!decision.querySelector("[aria-busy]")) await look();
  }, PAUSE, watching.signal, (why) => fill(wrong, why === null ? null : problem(why)));
}

// The action's description when the call was held. A call that an earlier version held has none: then that of the
// manifest, where the very action that is held is still registered.
async function description(detail, abort) {
  if (detail.description) return [["action", detail.description]];
  try {
    const action = await get(`/v1/actions/${detail.action_id}`, {}, abort);
    const isSame = action.version === detail.action_version
      && action.provider_module_digest === detail.provider_module_digest;
    return isSame && action.description ? [["action", action.description]] : [];
  } catch (error) {
    if (abort.aborted) throw error;
    return [];
  }
}

function showState(target, detail) {
  fill(target, tag(detail.state), tag(detail.risk_level ?? "risk unknown"), detail.state === "pending"
    ? el("span", { class: "left", "data-until": detail.expires_at }, left(detail.expires_at)) : null);
}

function effects(detail) {
  const sends = detail.approved_request;
  const rows = [];
  if (sends) rows.push(["will send", `${sends.method} ${sends.url}`]);
  for (const target of detail.approved_targets) {
    if (!sends || target !== `${sends.method} ${sends.url}`) rows.push(["will touch", target]);
  }
  if (!rows.length) rows.push(["will run", "the action, without a network or file target"]);
  for (const [name, value] of sends?.headers ?? []) rows.push(["header", `${name}: ${value}`]);
  if (sends?.tool) rows.push(["calls tool", `${sends.tool.name}, pinned as ${sends.tool.digest}`]);
  if (sends?.body) rows.push(["body", sends.body]);
  if (detail.approved_secrets.length) rows.push(["secrets", plain(detail.approved_secrets)]);
  for (const [name, hosts] of Object.entries(detail.secret_domains ?? {})) {
    const way = detail.secret_ways?.[name];
    rows.push(["sent to", `${name}: ${plain(hosts)}${way ? `, ${way}` : ""}`]);
  }
  if (detail.sinks.length) rows.push(["effects", plain(detail.sinks)]);
  if (detail.approved_egress.profile !== "none") {
    const { allowed_domains: domains, allowed_methods: methods, profile } = detail.approved_egress;
    rows.push(["may reach", `${plain(domains)} by ${plain(methods)} (${profile})`]);
    for (const name of detail.approved_egress.private_networks ?? []) {
      rows.push(["leads into", `private network ${name}`]);
    }
  }
  for (const [name, value] of Object.entries(detail.approved_files ?? {})) {
    rows.push([`files: ${name.replaceAll("_", " ")}`, plain(value)]);
  }
  const limits = Object.entries(detail.resource_limits).map(([name, value]) => `${name.replaceAll("_", " ")} ${value}`);
  return [...rows, ["limits", limits.join(", ")], ["verified by", detail.verifier_kind]];
}

function request(detail) {
  return el("div", { class: "request" }, el("h2", { id: "request" }, "Canonical request"),
    detail.request_json === null ? el("p", {}, "Not kept: the call has ended.")
      : el("pre", { tabindex: 0, role: "region", "aria-labelledby": "request", class: "exact" },
        long(detail.request_json, "the request")));
}

function asker(detail) {
  const calls = detail.budget_snapshot?.calls_remaining;
  return [
    ["asked by", `${plain(detail.principal)}${detail.owner ? ` (owner ${detail.owner})` : ""}`],
    ...(detail.approvals ? [["approvals", approvals(detail.approvals)]] : []),
    ...(detail.caps ?? []).map((cap) => ["cap", capLine(cap)]),
    ["asked at", [moment(detail.created_at)]],
    ["session", `${detail.session_id}${Number.isInteger(calls) ? `, ${calls} calls left before this one` : ""}`],
    ["because", `rule ${plain(detail.policy_rule)}, policy ${plain(detail.policy_version)}`],
    ["trace", [el("a", { href: `#/call/${detail.trace_id}` }, detail.trace_id)]],
  ];
}

function capLine(cap) {
  const limits = [["held above", cap.hold_above], ["denied above", cap.deny_above]].filter(([, limit]) => limit !== null);
  const within = `${cap.pointer} per ${cap.per} within ${cap.window_seconds} s`;
  return `${within}: ${cap.with_this} with this call, ${cap.total} without it; ${
    limits.map(([name, limit]) => `${name} ${limit}`).join(", ") || "no limit holds or denies it"}`;
}

function everything(detail) {
  const names = Object.keys(detail).sort();
  return el("details", {}, el("summary", {}, `Every member, as the gateway sends it (${names.length})`),
    facts(names.map((name) => [name, el("code", {}, long(asciiJson(detail[name]), name))]), { "data-all": "" }));
}

function unsigned(detail) {
  return detail.shown_hash === null
    ? el("p", { class: "problem" }, "This request has a number that can't be signed for, so this console can't decide "
      + "it. Use gatectl, or let it expire.")
    : problem(told({ code: "shown_mismatch" }));
}

function form(detail, look, settled) {
  const said = el("div", {});
  const learn = [
    ...detail.unresolved_domains.map((one) => ["learn_domain", one, "domain"]),
    ...detail.unresolved_paths.map((one) => ["learn_path", one, "path"]),
  ];
  const decided = el("form", { class: "card decision", "aria-labelledby": "decide", submit: (event) => {
    event.preventDefault();
    run(event.submitter.value);
  } },
    el("h2", { id: "decide" }, "Decide"),
    learn.map(([kind, value, word], place) => el("p", { class: "check" },
      el("input", { type: "checkbox", id: `learn-${place}`, name: kind, value }),
      el("label", { for: `learn-${place}` }, `Approving also lets every later call of this action use the ${word} `,
        el("strong", {}, value)))),
    field("Reason, if denied", { id: "reason", name: "reason", maxlength: 500 }, "The agent reads it."),
    said,
    el("div", { class: "buttons" },
      el("button", { type: "submit", value: "approve", class: "main" }, "Approve …"),
      el("button", { type: "submit", value: "deny", class: "danger" }, "Deny …")));

  async function run(decision) {
    const picked = (kind) => decided.querySelector(`[name=${kind}]:checked`)?.value ?? "";
    const more = decision === "deny" ? { reason: decided.elements.reason.value.trim() }
      : { learn_domain: picked("learn_domain"), learn_path: picked("learn_path") };
    if (["learn_domain", "learn_path"].some((kind) => decided.querySelectorAll(`[name=${kind}]:checked`).length > 1)) {
      fill(said, problem("One domain and one path can be learned with an approval. Choose one of each."));
      return;
    }
    if (!(await confirmed(decision === "approve" ? "Approve this plan?" : "Deny this call?",
      decision === "approve" ? "Sign and approve" : "Sign and deny", decision === "approve" ? "main" : "danger",
      facts(summary(detail, more))))) return;
    const buttons = decided.querySelectorAll("button");
    for (const button of buttons) button.disabled = true;
    decided.setAttribute("aria-busy", "true");
    fill(said, el("p", { role: "status" }, decision === "approve" ? "Signed; the call runs …" : "Signed …"));
    try {
      const answer = await decide(detail, decision, more);
      if (answer.decision === "pending_approval") {
        say("Your approval is stored.");
        fill(said, el("p", { role: "status" }, `${approvals(answer.approvals)}; others must follow.`));
        decided.removeAttribute("aria-busy");
        return;
      }
      say(decision === "approve" ? "Approved, and the call has run." : "Denied.");
      settled(decision === "approve" ? "approved" : "denied", decision === "approve" ? ran(answer) : refused(answer));
    } catch (error) {
      const isOver = await look(error).catch(() => false);
      if (isOver) return;
      decided.removeAttribute("aria-busy");
      for (const button of buttons) button.disabled = false;
      fill(said, problem(told(error)), LOST.has(error.code) ? el("p", {},
        "The decision may have arrived all the same: this page goes on looking.") : null);
      buttons[0].focus();
    }
  }
  return decided;
}

function summary(detail, more) {
  const sends = detail.approved_request;
  const rows = [["action", `${detail.action_id} ${plain(detail.action_version)}`],
    ["effect", sends ? `${sends.method} ${sends.url}` : plain(detail.approved_targets)],
    ["asked by", plain(detail.principal)], ["plan", detail.plan_hash], ["shown", detail.shown_hash]];
  return [...rows, ...Object.entries(more).filter(([, value]) => value).map(([name, value]) =>
    [name.replaceAll("_", " "), value])];
}
