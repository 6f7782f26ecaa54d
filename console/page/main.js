// The frame: which view is shown, the state of the gateway above it, and whether somebody is signed in.

import * as api from "./api.js";
import { el, fill, problem, say } from "./dom.js";
import { poll } from "./live.js";
import { secretOfLink, signInByLink, signInView } from "./signing_in.js";
import { stateLine } from "./state.js";
import { actionView, actionsView } from "./views/actions.js";
import { auditView } from "./views/audit.js";
import { callView } from "./views/call.js";
import { decisionsView } from "./views/decisions.js";
import { explainView } from "./views/explain.js";
import { heldView } from "./views/held.js";
import { heldCallView } from "./views/held_call.js";
import { keyView } from "./views/key.js";
import { overviewView } from "./views/overview.js";
import { policyView } from "./views/policy.js";
import { sessionsView } from "./views/sessions.js";
import { told } from "./words.js";

const STATUS_PAUSE = 5000;
const VIEWS = [
  // name in the address, with an argument or not, title, view; those without an argument are in the menu
  ["overview", false, "Overview", overviewView],
  ["held", false, "Held calls", heldView],
  ["held", true, "Held call", heldCallView],
  ["decisions", false, "Decisions", decisionsView],
  ["audit", false, "Audit", auditView],
  ["call", true, "Call", callView],
  ["actions", false, "Actions", actionsView],
  ["actions", true, "Action", actionView],
  ["policy", false, "Policy", policyView],
  ["policy", true, "Policy", policyView],
  ["explain", false, "Explain", explainView],
  ["sessions", false, "Sessions", sessionsView],
  ["key", false, "Key", keyView],
];
const content = document.getElementById("content");
const menu = document.getElementById("views");
let gateway = null;
let viewing = new AbortController();
let watching = new AbortController();

async function begin() {
  const answer = await fetch("/console.json", { cache: "no-store", credentials: "omit" });
  if (!answer.ok) throw new Error(`the console answers ${answer.status}`);
  gateway = await answer.json();
  document.getElementById("gateway").textContent = gateway.public_base_url;
  const secret = secretOfLink();
  const wrong = secret === null ? null : await signInByLink(secret, gateway, lock);
  addEventListener("hashchange", show);
  if (api.isSignedIn()) unlocked();
  else await show();
  if (wrong !== null) content.prepend(problem(wrong));
}

function lock(why) {
  watching.abort();
  fill(document.getElementById("state"));
  show().then(() => say(why || "Locked."));
}

function unlocked() {
  watching = new AbortController();
  const line = document.getElementById("state");
  const keptLine = stateLine(line);
  poll(async () => keptLine.show(await api.get("/v1/admin/status", {}, watching.signal)), STATUS_PAUSE,
    watching.signal, keptLine.failed);
  show();
}

async function show() {
  viewing.abort();
  viewing = new AbortController();
  const { signal } = viewing;
  const [name, argument] = location.hash.replace(/^#\/?/, "").split("?")[0].split("/");
  const query = new URLSearchParams(location.hash.split("?")[1] ?? "");
  const found = VIEWS.find(([one, takes]) => one === name && takes === Boolean(argument)) ?? VIEWS[0];
  menu.hidden = !api.isSignedIn();
  showMenu(found[0]);
  const root = el("div", { class: `view ${found[0]}` });
  content.replaceChildren(root);
  try {
    if (!api.isSignedIn()) {
      document.title = "Sign in – Gateway console";
      await signInView(root, gateway, { unlocked, lock, abort: signal });
    } else {
      document.title = `${found[2]} – Gateway console`;
      root.append(el("h1", { tabindex: -1 }, found[2]));
      root.querySelector("h1").focus();
      await found[3](root, { abort: signal, gateway, query, argument: named(argument) });
    }
  } catch (error) {
    if (!signal.aborted) root.append(problem(told(error)));
  }
}

function showMenu(current) {
  fill(menu, el("ul", {}, VIEWS.filter(([, takes]) => !takes).map(([name, , title]) => el("li", {},
    el("a", { href: `#/${name}`, "aria-current": name === current ? "page" : null }, title)))),
    el("button", { type: "button", class: "small", click: () => api.signOut() }, "Lock"));
}

function named(argument) {
  try {
    return argument === undefined ? null : decodeURIComponent(argument);
  } catch {
    return null;
  }
}

try {
  if (!isSecureContext || !crypto.subtle) throw new Error("this address is not one where browsers keep keys");
  await begin();
} catch (error) {
  fill(content, el("h1", {}, "This console can't be used"), problem(told(error)));
}

