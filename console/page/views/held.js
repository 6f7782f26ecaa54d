// What waits for an operator, the newest first, those of one principal together; and, on request, what was decided.

import { get } from "../api.js";
import { choice, el, fill, problem } from "../dom.js";
import { poll } from "../live.js";
import { approvals, minutes, moment, tag } from "../words.js";

const PAUSE = 3000;
const MOST = 200;
const STATES = [["pending", "waiting"], ["", "all"], ["approved", "approved"], ["denied", "denied"], ["failed", "failed"],
  ["claimed", "being decided"]];

/** Show the list. */
export async function heldView(root, { abort }) {
  let status = "pending";
  let shownText = null;
  const list = el("ul", { class: "cards", "aria-label": "Held calls" });
  const count = el("p", { class: "quiet" });
  const wrong = el("div", {});
  const chooser = choice("Show", "which", STATES, status);
  const ask = async () => {
    const asked = status;
    const answer = await get("/v1/approvals", { status: asked, limit: MOST, group: "principal" }, abort);
    const text = JSON.stringify(answer);
    if (asked !== status || text === shownText) return;
    shownText = text;
    const focused = document.activeElement?.closest("li")?.dataset.id;
    fill(count, counted(answer, status === "pending"));
    fill(list, byPrincipal(answer.approvals).map(item));
    if (focused) list.querySelector(`[data-id="${CSS.escape(focused)}"] a`)?.focus();
  };
  chooser.querySelector("select").addEventListener("change", (event) => {
    status = event.target.value;
    shownText = null;
    ask().catch(() => {});
  });
  root.append(chooser, wrong, count, list);
  ticking(list, abort);
  poll(ask, PAUSE, abort, (why) => fill(wrong, why === null ? null : problem(why)));
}

function byPrincipal(approvals) {
  const groups = new Map();
  for (const one of approvals) groups.set(one.principal, [...(groups.get(one.principal) ?? []), one]);
  return [...groups.values()].flat();
}

function counted({ count, total }, isWaiting) {
  if (count === 0) return isWaiting ? "Nothing waits." : "None.";
  const shown = total > count ? `${count} of ${total}` : `${count}`;
  return isWaiting ? `${shown} ${count === 1 ? "call waits" : "calls wait"}.` : `${shown} shown.`;
}

function item(one) {
  const isHeld = one.state === "pending";
  return el("li", { "data-id": one.approval_id, class: "card" },
    el("h2", {}, el("a", { href: `#/held/${one.approval_id}` }, one.action_id, " ", one.action_version ?? "")),
    one.summary ? el("p", { class: "summary" }, one.summary) : null,
    el("p", { class: "tags" }, tag(one.risk_level ?? "risk unknown"), tag(one.state),
      isHeld ? el("span", { class: "left", "data-until": one.expires_at }, left(one.expires_at)) : null),
    el("p", {}, "asked by ", el("strong", {}, one.principal ?? "unknown"), one.owner ? ` (owner ${one.owner})` : "",
      " at ", moment(one.created_at)),
    isHeld && one.approvals ? el("p", {}, approvals(one.approvals)) : null,
    one.claimed_by ? el("p", {}, "decided by ", el("strong", {}, one.claimed_by)) : null,
    one.deny_reason ? el("p", {}, "denied for: ", one.deny_reason) : null,
    one.error_code ? el("p", {}, "failed with: ", one.error_code) : null,
    el("p", { class: "quiet mono" }, one.approval_id));
}

/** What is left of a hold's time, in words. */
export function left(until) {
  const seconds = (Date.parse(until) - Date.now()) / 1000;
  return seconds > 0 ? `expires in ${minutes(seconds)}` : "expired";
}

/** Keep every `data-until` below `target` as it is now. Not read out: it changes each second. */
export function ticking(target, abort) {
  const timer = setInterval(() => {
    for (const one of target.querySelectorAll("[data-until]")) one.textContent = left(one.dataset.until);
  }, 1000);
  abort.addEventListener("abort", () => clearInterval(timer));
}
