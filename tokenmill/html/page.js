// What a token is, on hover, tap or, in a focused sequence, by the arrow keys; also for the bars of charts.
"use strict";
{ // its names are its own: a page may have other scripts
  const tip = document.getElementById("tip");
  const live = document.getElementById("live");
  let at = null;      // what the tip tells of
  let cursor = null;  // where the arrow keys are; the tip follows after the scrolling
  function show(element) {
    if (at) at.classList.remove("at");
    at = element;
    if (element && element.title) { element.dataset.told = element.title; element.removeAttribute("title"); }
    const text = element ? element.dataset.told || "" : "";
    tip.hidden = !text;
    if (!text) return "";
    if (element.tagName === "I") element.classList.add("at");
    tip.textContent = text;
    const box = element.getClientRects()[0] || element.getBoundingClientRect();
    const left = Math.min(Math.max(box.left, 6), innerWidth - tip.offsetWidth - 6);
    const above = box.top - tip.offsetHeight - 8;
    tip.style.left = Math.max(left, 6) + "px";
    tip.style.top = (above > 4 ? above : box.bottom + 8) + "px";
    return text;
  }
  function target(event) { return event.target.closest ? event.target.closest(".t i, .plot div") : null; }
  document.addEventListener("pointerover", (event) => show(target(event)));
  document.addEventListener("pointerdown", (event) => show(cursor = target(event)));
  document.addEventListener("scroll", () => show(null), true);
  document.addEventListener("input", () => show(null));
  document.addEventListener("focusout", (event) => {
    if (at && event.relatedTarget && event.relatedTarget.contains(at)) return;  // a tap: its tip came before the focus
    cursor = null;
    show(null);
  });
  document.addEventListener("keydown", (event) => {
    const list = document.activeElement;
    if (event.key === "Escape") { show(null); return; }
    if (!list || !list.matches(".t[tabindex], .plot")) return;
    const items = list.querySelectorAll(":scope > i, :scope > div");
    const here = cursor && list.contains(cursor) ? Array.prototype.indexOf.call(items, cursor) : -1;
    const next = { ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: items.length - 1 }[event.key];
    if (next === undefined || !items.length) return;
    event.preventDefault();
    const item = cursor = items[Math.min(Math.max(next, 0), items.length - 1)];
    item.scrollIntoView({ block: "nearest" });
    requestAnimationFrame(() => requestAnimationFrame(() => { if (item === cursor) live.textContent = show(item); }));
  });
}
