// Who may call what, and which rule has decided lately: the explanation of a single call is on its own page.

import { get } from "../api.js";
import { el, facts } from "../dom.js";
import { plain } from "../visible.js";
import { moment, tag } from "../words.js";
import { boundTables } from "./bounds.js";

const RISKS = ["low", "medium", "high", "critical"];

/** Show all principals, or one. */
export async function policyView(root, { abort, argument }) {
  if (argument !== null) {
    await onePrincipal(root, argument, abort);
    return;
  }
  const [policy, thresholds, caps] = await Promise.all([get("/v1/admin/policy", {}, abort),
    get("/v1/admin/policy/thresholds", {}, abort), get("/v1/admin/policy/caps", {}, abort)]);
  const names = Object.keys(policy.principals).sort();
  root.append(el("p", {}, "Policy ", el("code", {}, plain(policy.policy_version)),
    ". Why one call was allowed, held or denied stands on its own page, by its trace. What would be decided about a "
    + "call that nobody made: ", el("a", { href: "#/explain" }, "explain"), "."),
    names.length ? "" : el("p", {}, "No principal has an entry."),
    el("ul", { class: "cards", "aria-label": "Principals" }, names.map((name) => el("li", { class: "card" },
      el("h2", {}, name === "*" ? "* (all without an entry)"
        : el("a", { href: `#/policy/${encodeURIComponent(name)}` }, name)),
      facts([["actions", plain(policy.principals[name].actions)], ["effects", plain(policy.principals[name].sinks)]])))),
    ...boundTables(thresholds, caps));
  const { standing, origin } = await get("/v1/admin/standing", {}, abort);
  if (standing.length) root.append(standingApprovals(standing, origin));
}

function standingApprovals(standing, origin) {
  return el("section", { "aria-labelledby": "standing" }, el("h2", { id: "standing" }, "Standing approvals"),
    el("ul", { class: "cards", "aria-label": "Standing approvals" }, standing.map((one) => el("li", { class: "card" },
      el("h3", {}, `${plain(one.action_id)} by ${plain(one.principal)}`),
      facts([["until", moment(one.until)],
        ["calls", one.max_calls === undefined ? plain(one.calls) : `${plain(one.calls)} of ${plain(one.max_calls)}`],
        ...(one.where ?? []).map((each) => ["where", `${plain(each.pointer)} ${plain(each.op)} ${plain(each.value)}`]),
        ...(one.origin === origin ? [] : [["for another ledger", plain(one.origin)]]),
        ["signed by", plain(one.operator)], ["standing approval", plain(one.standing_id)]])))));
}

async function onePrincipal(root, name, abort) {
  const one = await get(`/v1/admin/policy/${name}`, {}, abort);
  root.append(el("p", {}, "What ", el("strong", {}, one.principal), " may call, by risk."), facts([
    ...RISKS.map((risk) => [risk, (one.risk_breakdown[risk] ?? []).length
      ? [tag(risk), " ", plain(one.risk_breakdown[risk])] : "-"]),
    ["effects", plain(one.sinks)]]),
    el("p", {}, el("a", { href: `#/sessions?principal=${encodeURIComponent(one.principal)}` }, "Its sessions")),
    el("p", {}, el("a", { href: `#/audit?principal=${encodeURIComponent(one.principal)}` }, "Its events: the rule that "
      + "decided is in each")));
}
