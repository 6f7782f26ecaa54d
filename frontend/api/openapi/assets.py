"""How the page looks, and the one comfort that needs a script: a box that narrows the list."""

STYLE = """
:root { --ink: #1c2430; --soft: #5b6675; --line: #d9dee5; --paper: #fff; --shade: #f4f6f8; --key: #0b5cad; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e8ee; --soft: #9aa5b4; --line: #343c48; --paper: #14181e; --shade: #1d232b; --key: #79b4f2; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 1rem 1.2rem 6rem; color: var(--ink); background: var(--paper);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { margin: .5rem 0; font-size: 1.7rem; } h2 { margin: 2.2rem 0 .4rem; border-bottom: 1px solid var(--line); }
h4 { margin: 1.1rem 0 .3rem; } p { margin: .5rem 0; max-width: 48rem; } a { color: var(--key); }
nav a { margin-right: .9rem; white-space: nowrap; } .soft { color: var(--soft); }
code, pre { font: .88em ui-monospace, monospace; } code { background: var(--shade); padding: .05em .25em; }
pre { background: var(--shade); border: 1px solid var(--line); padding: .6rem .8rem; overflow-x: auto; }
details { border: 1px solid var(--line); border-radius: 4px; margin: .45rem 0; padding: 0 .8rem; }
summary { cursor: pointer; padding: .45rem 0; }
summary b { display: inline-block; min-width: 4.6rem; color: var(--key); }
summary span { float: right; } table { border-collapse: collapse; width: 100%; }
td, th { text-align: left; vertical-align: top; padding: .25rem .8rem .25rem 0; border-bottom: 1px solid var(--line); }
input { font: inherit; width: 100%; padding: .35rem .6rem; margin: .8rem 0; color: inherit;
  background: var(--paper); border: 1px solid var(--line); }
@media (max-width: 40rem) { summary span { float: none; display: block; } }
"""

SCRIPT = """
const box = document.createElement("input");
box.placeholder = "narrow the list: a path, a word, a code";
box.setAttribute("aria-label", box.placeholder);
box.addEventListener("input", () => {
  const word = box.value.toLowerCase();
  for (const one of document.querySelectorAll("details"))
    one.hidden = !one.textContent.toLowerCase().includes(word);
});
document.querySelector("nav").after(box);
const unfold = () => { const one = document.getElementById(location.hash.slice(1)); if (one) one.open = true; };
addEventListener("hashchange", unfold);
unfold();
"""
