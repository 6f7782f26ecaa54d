// Agents that have a lease now, and ending one before its time.

import { get, post } from "../api.js";
import { confirmed, el, facts, field, fill, problem, say } from "../dom.js";
import { poll } from "../live.js";
import { plain } from "../visible.js";
import { moment, told } from "../words.js";
import { left, ticking } from "./held.js";

const PAUSE = 5000;
const MOST = 100;

/** Show the list. The query of the address may name a principal. */
export async function sessionsView(root, { abort, query }) {
  let principal = query.get("principal") ?? "";
  let after = "";
  let shownText = null;
  const list = el("ul", { class: "cards", "aria-label": "Sessions" });
  const count = el("p", { class: "quiet", role: "status" });
  const wrong = el("div", {});
  const older = el("button", { type: "button", hidden: true }, "Older ones");
  const newest = el("button", { type: "button", hidden: true, click: () => turn(principal, "") }, "Newest ones");
  const ask = async () => {
    const asked = [principal, after].join(" ");
    const answer = await get("/v1/admin/sessions", { principal, after, limit: MOST }, abort);
    const text = JSON.stringify(answer);
    if (asked !== [principal, after].join(" ") || text === shownText) return;
    shownText = text;
    const focused = document.activeElement?.closest("li")?.dataset.id;
    fill(count, counted(answer));
    fill(list, answer.sessions.map((one) => item(one, () => revoke(one))));
    older.hidden = answer.next === null;
    older.onclick = () => turn(principal, answer.next);
    newest.hidden = after === "";
    if (focused) list.querySelector(`[data-id="${CSS.escape(focused)}"] button`)?.focus();
  };
  const shown = () => ask().then(() => fill(wrong), (error) => {
    if (!abort.aborted) fill(wrong, problem(told(error)));
  });
  function turn(whose, from) {
    principal = whose;
    after = from;
    shownText = null;
    shown();
  }

  async function revoke(one) {
    const isSure = await confirmed("End this session?", "Revoke", "danger",
      facts([["session", one.session_id], ["principal", one.principal], ["held calls", one.pending_approvals]]),
      el("p", {}, "Its lease is refused at once, and its held calls expire. An agent that may have a lease takes a new "
        + "one: to keep it out, take away what it may call first."));
    if (!isSure) return;
    try {
      await post(`/v1/admin/sessions/${one.session_id}/revoke`, undefined, abort);
      say(`The session of ${one.principal} is revoked.`);
      turn(principal, after);
    } catch (error) {
      if (!abort.aborted) fill(wrong, problem(told(error)));
    }
  }

  root.append(el("form", { class: "search card", role: "search", submit: (event) => {
    event.preventDefault();
    turn(event.target.elements.principal.value.trim(), "");
  } }, field("Principal", { id: "principal", name: "principal", maxlength: 256, value: principal }),
    el("div", { class: "buttons" }, el("button", { type: "submit", class: "main" }, "Show"))),
    wrong, count, list, el("div", { class: "buttons" }, newest, older));
  ticking(list, abort);
  poll(ask, PAUSE, abort, (why) => fill(wrong, why === null ? null : problem(why)));
}

function counted({ count, next }) {
  if (count === 0) return next === null ? "Nobody has a lease." : "None among these; older ones may have one.";
  return `${count}${next === null ? "" : " of more"} ${count === 1 ? "session" : "sessions"}, the newest first.`;
}

function item(one, revoke) {
  return el("li", { "data-id": one.session_id, class: "card" },
    el("h2", {}, el("a", { href: `#/audit?session_id=${one.session_id}` }, one.principal)),
    el("p", { class: "tags" }, el("span", { class: "left", "data-until": one.expires_at }, left(one.expires_at))),
    facts([["owner", plain(one.owner)],
      ["known by", one.uid === null ? plain(one.identity_method) : `${plain(one.identity_method)}, uid ${one.uid}`],
      ["since", [moment(one.issued_at)]],
      ["calls left", one.max_calls === null ? "not counted" : `${one.calls_remaining} of ${one.max_calls}`],
      ["held calls", one.pending_approvals]], { class: "facts brief" }),
    el("p", { class: "quiet mono" }, one.session_id),
    el("div", { class: "buttons" }, el("button", { type: "button", class: "danger small",
      "aria-label": `Revoke the session of ${one.principal}, ${one.session_id}`, click: revoke }, "Revoke")));
}
