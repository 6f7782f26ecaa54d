// What is registered, and the manifest of one action.

import { actionList, open } from "../api.js";
import { el, facts, lines, long } from "../dom.js";
import { asciiJson, plain } from "../visible.js";
import { tag } from "../words.js";

/** Show all. */
export async function actionsView(root, { abort }) {
  const found = await actionList(abort);
  root.append(el("p", { class: "quiet" }, `${found.length} registered`), el("ul", { class: "cards", "aria-label": "Actions" },
    found.map((one) => el("li", { class: "card" },
      el("h2", {}, el("a", { href: `#/actions/${one.action_id}` }, one.action_id, " ", one.version)),
      el("p", { class: "tags" }, tag(one.risk_level)),
      el("p", {}, long(one.description ?? "", `the description of ${one.action_id}`))))));
}

/** Show one. */
export async function actionView(root, { abort, argument }) {
  const manifest = await open(`/v1/actions/${argument}`, abort);
  root.append(el("p", { class: "tags" }, tag(manifest.risk_level ?? "risk unknown"),
    el("strong", {}, `${plain(manifest.action_id)} ${plain(manifest.version)}`)),
    el("p", {}, long(manifest.description ?? "", "the description")),
    el("p", {}, el("a", { href: `#/audit?action_id=${argument}` }, "Its events")),
    facts(Object.entries(manifest).filter(([name]) => name !== "description").map(([name, value]) => [name,
      isSimple(value) ? plain(value) : lines(asciiJson(value, 2), name)])));
}

function isSimple(value) {
  return value === null || typeof value !== "object"
    || (Array.isArray(value) && value.every((one) => typeof one === "string"));
}
