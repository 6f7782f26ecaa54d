// Who may call what, and which rule has decided lately: the explanation of a single call is on its own page.

import { get } from "../api.js";
import { el, facts } from "../dom.js";
import { plain } from "../visible.js";
import { tag } from "../words.js";

const RISKS = ["low", "medium", "high", "critical"];

/** Show all principals, or one. */
export async function policyView(root, { abort, argument }) {
  if (argument !== null) {
    await onePrincipal(root, argument, abort);
    return;
  }
  const policy = await get("/v1/admin/policy", {}, abort);
  const names = Object.keys(policy.principals).sort();
  root.append(el("p", {}, "Policy ", el("code", {}, plain(policy.policy_version)),
    ". Why one call was allowed, held or denied stands on its own page, by its trace. What would be decided about a "
    + "call that nobody made: ", el("a", { href: "#/explain" }, "explain"), "."),
    names.length ? "" : el("p", {}, "No principal has an entry."),
    el("ul", { class: "cards", "aria-label": "Principals" }, names.map((name) => el("li", { class: "card" },
      el("h2", {}, name === "*" ? "* (all without an entry)"
        : el("a", { href: `#/policy/${encodeURIComponent(name)}` }, name)),
      facts([["actions", plain(policy.principals[name].actions)], ["effects", plain(policy.principals[name].sinks)]])))));
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
