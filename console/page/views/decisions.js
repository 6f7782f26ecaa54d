// Decisions as they are made: the audit log of now, asked again and again, bounded.

import { get } from "../api.js";
import { el, fill, problem } from "../dom.js";
import { poll } from "../live.js";
import { eventRow } from "./events.js";

const PAUSE = 2000;
const AT_ONCE = 100;
const MOST = 200; // rows that are kept
const OVERLAP = 2000; // milliseconds: what was written late lies before what was seen

/** Show them. */
export async function decisionsView(root, { abort }) {
  const list = el("ol", { class: "events", "aria-label": "Decisions, newest first" });
  const wrong = el("div", {});
  const gap = el("p", { class: "quiet" });
  let isPaused = false;
  const pause = el("button", { type: "button", class: "small", "aria-pressed": "false", click: () => {
    isPaused = !isPaused;
    pause.setAttribute("aria-pressed", String(isPaused));
  } }, "Pause");
  root.append(el("p", { class: "bar" }, el("span", { class: "quiet" }, `The last ${MOST}, newest first; open one for `
    + "all of it."), pause), wrong, gap, list);
  const seen = new Set();
  let newest = null;
  poll(async () => {
    if (isPaused) return;
    const after = newest === null ? "" : new Date(Date.parse(newest) - OVERLAP).toISOString();
    const { events } = await get("/v1/audit/events", { limit: AT_ONCE, after }, abort);
    const fresh = events.filter((one) => !seen.has(one.event_id));
    if (newest !== null && fresh.length === AT_ONCE) fill(gap, "More happened than is shown here: see Audit.");
    for (const one of fresh.reverse()) {
      seen.add(one.event_id);
      list.prepend(eventRow(one));
      if (newest === null || one.timestamp > newest) newest = one.timestamp;
    }
    while (list.childElementCount > MOST) {
      seen.delete(list.lastElementChild.dataset.id);
      list.lastElementChild.remove();
    }
    if (!list.childElementCount) fill(gap, "Nothing yet.");
    else if (gap.textContent === "Nothing yet.") fill(gap);
  }, PAUSE, abort, (why) => fill(wrong, why === null ? null : problem(why)));
}
