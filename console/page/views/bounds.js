// Thresholds and caps: the bounds of values of requests, and the use of those that bound sums. Changed with gatectl.

import { el } from "../dom.js";
import { share } from "../plot.js";
import { plain } from "../visible.js";

const MOST_ROWS = 12;
const UNITS = [[86_400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
const LISTS = [["held unless in", "hold_unless_in"], ["denied unless in", "deny_unless_in"]];

/** What has been used of caps, the fullest first: numbers in words, and a bar. */
export function capUse({ caps, next }) {
  if (caps.length === 0) return el("p", { class: "quiet" }, "No action has a cap.");
  const used = caps.flatMap((cap) => cap.used.map((one) => ({ cap, one, part: partOf(cap, one) })));
  const rows = used.sort((a, b) => b.part - a.part).slice(0, MOST_ROWS);
  const isCut = used.length > rows.length || next != null || caps.some((cap) => cap.used_next != null);
  return el("div", {}, rows.length === 0 ? el("p", { class: "quiet" }, "Nothing has been used of any cap.")
    : table(["Cap of", "Used"], rows.map(({ cap, one, part }) => [
      el("span", {}, valueOf(cap), " · ", subjectOf(cap, one)),
      el("div", { class: "share" }, usedOf(cap, one), share(part))])),
    isCut ? el("p", { class: "quiet" }, "There are more: gatectl policy caps list.") : null);
}

/** All bounds of one policy, for reading. */
export function boundTables({ thresholds }, { caps, next }) {
  return [
    section("Thresholds", thresholds.length === 0 ? "No value holds or denies a call."
      : table(["Value", "Calls are"], thresholds.map((one) => [valueOf(one), thresholdOf(one)]))),
    section("Caps", caps.length === 0 ? "No sum holds or denies a call."
      : table(["Value", "Per", "Within", "Calls are"], caps.map((one) => [valueOf(one), plain(one.per),
        windowOf(one), boundsOf(one)])), next != null ? "There are more: gatectl policy caps list." : null),
  ];
}

function section(title, ...children) {
  return el("section", { class: "card" }, el("h2", {}, title), ...children);
}

function table(names, rows) {
  return el("table", {}, el("thead", {}, el("tr", {}, names.map((one) => el("th", { scope: "col" }, one)))),
    el("tbody", {}, rows.map(([first, ...others]) => el("tr", {}, el("th", { scope: "row" }, first),
      others.map((one) => el("td", {}, one))))));
}

function valueOf({ action_id: action, pointer }) {
  return `${plain(action)} ${plain(pointer)}`;
}

function subjectOf({ per }, { subject }) {
  return subject == null ? (per === "owner" ? "calls without an owner" : "all together") : plain(subject);
}

function usedOf(cap, { total, unknown }) {
  const open = Number(unknown) > 0 ? `, ${plain(unknown)} of it in calls whose outcome is unknown` : "";
  return `${plain(total)} of ${plain(mostOf(cap))} in ${windowOf(cap)}${open}`;
}

function mostOf({ hold_above: hold, deny_above: deny }) {
  return deny ?? hold;
}

function partOf(cap, { total }) {
  const part = Number(total) / Number(mostOf(cap));
  return Number.isNaN(part) ? 0 : Math.min(1, Math.max(0, part));
}

function windowOf({ window_seconds: seconds }) {
  const [size, unit] = UNITS.find(([one]) => seconds % one === 0) ?? [1, "s"];
  return `${plain(seconds / size)} ${unit}`;
}

function boundsOf({ hold_above: hold, deny_above: deny }) {
  return [["held above", hold], ["denied above", deny]].filter(([, bound]) => bound != null)
    .map(([words, bound]) => `${words} ${plain(bound)}`).join(", ");
}

function thresholdOf(one) {
  const lists = LISTS.filter(([, name]) => one[name] != null).map(([words, name]) => `${words} ${plain(one[name])}`);
  return [boundsOf(one), ...lists].filter(Boolean).join(", ");
}
