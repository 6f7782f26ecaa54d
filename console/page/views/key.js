// The key of this browser: what the gateway knows of it, and how to be rid of it.

import * as api from "../api.js";
import { el, facts } from "../dom.js";
import * as keys from "../keys.js";
import { isForgotten } from "../signing_in.js";

/** Show it. */
export async function keyView(root, { gateway }) {
  const held = await keys.kept(gateway.public_base_url);
  root.append(facts([["gateway", held.gateway], ["operator", held.name], ["dpop_jkt", held.thumbprint],
    ["can be copied out", held.key.extractable ? "yes" : "no"]]),
    el("p", {}, "Lost this machine, or the browser's data? Remove the operator ", el("code", {}, held.name),
      " from the gateway's configuration and reload it: its key and its signatures count for nothing from then on."),
    el("div", { class: "buttons" }, el("button", { type: "button", class: "danger", click: async () => {
      if (await isForgotten(held)) api.signOut("The key is forgotten.");
    } }, "Forget this key …")));
}
