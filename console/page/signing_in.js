// Before anything of the gateway is shown: a key is made and registered once, the API key is typed for each session.

import * as api from "./api.js";
import { confirmed, el, field, fill, lines, problem, say } from "./dom.js";
import * as keys from "./keys.js";
import { told } from "./words.js";

/** Show what is missing: a key, or the API key. */
export async function signInView(root, gateway, session) {
  const held = await keys.kept(gateway.public_base_url);
  if (held === undefined) await makeView(root, gateway, session);
  else unlockView(root, held, session);
}

/** The secret of a sign-in link in the address, which is taken out of it; null without one. */
export function secretOfLink() {
  const [, secret] = location.hash.match(/^#\/sign-in\/([A-Za-z0-9_-]{1,128})$/) ?? [];
  if (secret !== undefined) history.replaceState(null, "", location.pathname);
  return secret ?? null;
}

/** Sign in by the secret of a link. Returns null, or a sentence that says why not. */
export async function signInByLink(secret, gateway, lock) {
  try {
    const brought = await api.useLink(secret);
    const held = await keys.adopt(gateway.public_base_url, brought.name, brought.private_key);
    if (held === undefined) return "This browser has a key of another operator: sign in with it, or forget it first.";
    api.signIn(held, brought.api_key, lock);
    await api.get("/v1/admin/status");
    return null;
  } catch (error) {
    api.forgetSession();
    return told(error);
  }
}

/** The lines that the gateway's configuration needs. */
export function registration(held, digest) {
  return `[[operators]]\nname = "${held.name}"\n`
    + `api_key_sha256 = "${digest}"\ndpop_jkt = "${held.thumbprint}"`;
}

/** Ask, and forget the key; false when it is kept. */
export async function isForgotten(held) {
  const isMeant = await confirmed("Forget this key?", "Forget it", "danger", el("p", {},
    "It can't be brought back. Another key has to be registered before this browser can decide anything."));
  if (isMeant) await keys.forget(held.gateway);
  return isMeant;
}

async function makeView(root, gateway, session) {
  const others = (await keys.gateways()).filter((one) => one !== gateway.public_base_url);
  const said = el("div", {});
  const form = el("form", { class: "card", submit: async (event) => {
    event.preventDefault();
    const name = form.elements.name.value.trim();
    if (!keys.isName(name)) {
      fill(said, problem("A name is 1 to 32 lower case letters, digits, dashes and underscores."));
      form.elements.name.focus();
      return;
    }
    const made = await keys.make(gateway.public_base_url, name);
    const { key, digest } = await keys.apiKey(name);
    registerView(root, made, key, digest, session);
  } },
    field("Operator's name", { id: "name", name: "name", required: true, maxlength: 32, autocapitalize: "none" },
      "A name of its own for this browser, such as ann-laptop: each operator in the configuration has one key."),
    said,
    el("div", { class: "buttons" }, el("button", { type: "submit", class: "main" }, "Make a key")));
  fill(root, el("h1", {}, "Make this browser's key"),
    others.length ? problem(`This browser has a key here for ${others.join(", ")}. This console speaks for `
      + `${gateway.public_base_url}. If you did not mean another gateway, stop here.`) : null,
    el("p", {}, "Proofs and approvals are signed in this browser, for ", el("strong", {}, gateway.public_base_url),
      ". The key is made here and can't be copied out, not by this page either. Losing the browser's data loses the "
      + "key; then make another."), form);
}

function registerView(root, made, key, digest, session) {
  const shownKey = el("input", { id: "made", readonly: true, value: key, spellcheck: "false", class: "mono" });
  fill(root, el("h1", { tabindex: -1 }, "Register this browser's key"),
    el("ol", { class: "steps" },
      el("li", {}, "Keep the API key where you keep passwords. It is shown this once, and asked for at each sign-in.",
        el("p", { class: "field" }, el("label", { for: "made" }, "API key"), shownKey)),
      el("li", {}, "Put these lines into the gateway's configuration file. They hold no secret.",
        lines(registration(made, digest), "Lines for the configuration file")),
      el("li", {}, "Reload the gateway: ", el("code", {}, "gatectl reload"), ", or ",
        el("code", {}, "systemctl reload gateway"), ".")),
    el("div", { class: "buttons" }, el("button", { type: "button", class: "main", click: () => {
      fill(root);
      unlockView(root, made, session);
    } }, "Done, sign in")));
  root.querySelector("h1").focus();
  say("The key is made.");
}

function unlockView(root, held, session) {
  const said = el("div", {});
  const form = el("form", { class: "card", submit: async (event) => {
    event.preventDefault();
    const button = form.querySelector("button");
    button.disabled = true;
    fill(said);
    api.signIn(held, form.elements.token.value.trim(), session.lock);
    try {
      await api.get("/v1/admin/status", {}, session.abort);
      session.unlocked();
    } catch (error) {
      if (session.abort.aborted) return;
      api.forgetSession();
      button.disabled = false;
      fill(said, problem(told(error)));
      form.elements.token.focus();
    }
  } },
    el("input", { type: "text", name: "username", value: held.name, autocomplete: "username", hidden: true,
      readonly: true, "aria-hidden": "true", tabindex: -1 }),
    field(`API key of ${held.name}`, { id: "token", name: "token", type: "password", required: true,
      autocomplete: "current-password" }, "Kept in this page's memory until you lock it, or half an hour goes by."),
    said,
    el("div", { class: "buttons" }, el("button", { type: "submit", class: "main" }, "Sign in")));
  root.append(el("h1", {}, "Sign in"), form,
    el("p", { class: "quiet" }, "This browser's key: ", el("code", {}, held.thumbprint), " (dpop_jkt)"),
    el("p", { class: "quiet" }, "No API key, or not registered? ",
      el("button", { type: "button", class: "small", click: async () => {
        if (await isForgotten(held)) dispatchEvent(new HashChangeEvent("hashchange"));
      } }, "Forget this key and make another")));
  form.elements.token.focus();
}
