// Shows the tokens of the typed text for both tokenizers: boxes, IDs, counts, and differing boundaries.
"use strict";

const typed = document.getElementById("typed");
const sides = ["first", "second"].map((name) => ({
  tokenizer: null,
  facts: document.getElementById(name + "-facts"),
  boxes: document.getElementById(name + "-tokens"),
  ids: document.getElementById(name + "-ids"),
}));
const verdict = document.getElementById("verdict");

const LARGEST_BOX = 8; // tokens; longer incomplete sequences are shown as bytes
const SPELLED = { "\n": "↵", "\t": "⇥", "\r": "␍", "\u00a0": "␣" };
const many = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
const hex = (bytes) => Array.from(bytes, (byte) => byte.charCodeAt(0).toString(16).padStart(2, "0"));
const spelled = (text) => Object.assign(document.createElement("s"), { textContent: text });

function decoded(bytes) { // null: invalid UTF-8; undefined: ends inside a character
  const array = Uint8Array.from(bytes, (byte) => byte.charCodeAt(0));
  const strict = { fatal: true, ignoreBOM: true };
  try { return new TextDecoder("utf-8", strict).decode(array); } catch { /* checked below */ }
  const begun = new TextDecoder("utf-8", strict);
  try { begun.decode(array, { stream: true }); return undefined; } catch { return null; }
}

// Yields boxes, nearly always of one token. Tokens that form one character together share a box.
function* boxesOf(tokens) {
  let held = [], bytes = "";
  const apart = function* () {
    for (const token of held) yield { tokens: [token], text: null };
    held = [];
    bytes = "";
  };
  for (const token of tokens) {
    if (token.bytes === null) { yield* apart(); yield { tokens: [token], text: null }; continue; }
    held.push(token);
    bytes += token.bytes;
    const text = decoded(bytes);
    if (text === undefined && held.length < LARGEST_BOX) continue;
    if (typeof text === "string") { yield { tokens: held, text }; held = []; bytes = ""; } else yield* apart();
  }
  yield* apart();
}

function fill(element, box) {
  const [token] = box.tokens;
  if (token.bytes === null) { element.append(spelled("?")); return; }
  if (box.text === null) {
    element.append(spelled(hex(token.bytes).join("").toUpperCase()));
    return;
  }
  if (/^\p{M}/u.test(box.text)) element.append("\u25cc"); // a combining mark without a base character
  for (const character of box.text) {
    if (character === " " || !/[\p{C}\p{Z}]/u.test(character)) { element.append(character); continue; }
    const code = "U+" + character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    element.append(spelled(SPELLED[character] || code));
    if (character === "\n" || character === "\t") element.append(character);
  }
}

function tipOf(box, place) {
  const ids = box.tokens.map((token) => token.id), bytes = box.tokens.map((token) => token.bytes || "").join("");
  const spelled = hex(bytes.slice(0, 16)).join(" ") + (bytes.length > 16 ? " ..." : "");
  const [to, s] = ids.length > 1 ? [` to ${place + ids.length - 1}`, "s"] : ["", ""];
  return `token ${place}${to}: id${s} ${ids.join(" ")}, ${many(bytes.length, "byte")}, ${spelled}`;
}

// Returns the span of each token in the bytes of the text as "start stop". An added leading space is not part of the text.
function spansOf(tokens, text) {
  const joined = tokens.map((token) => (token.bytes === null ? "\0" : token.bytes)).join("");
  let at = joined === text ? 0 : joined === " " + text ? -1 : null;
  return at === null ? null : tokens.map((token) => `${Math.max(at, 0)} ${(at += token.bytes.length)}`);
}

function show() {
  const text = typed.value.toWellFormed(), bytes = binary(utf8.encode(text));
  for (const side of sides) {
    side.error = null;
    try { side.tokens = side.tokenizer.encode(text); } catch (error) {
      if (!(error instanceof CannotBeExact)) throw error;
      side.tokens = [];
      side.error = error.message;
    }
    side.spans = side.error ? null : spansOf(side.tokens, bytes);
  }
  const compared = sides.every((side) => side.spans);
  sides.forEach((side, number) => {
    const other = new Set(compared ? sides[1 - number].spans : []);
    side.differing = compared ? side.spans.filter((span) => !other.has(span)).length : 0;
    side.boxes.replaceChildren();
    let place = 0;
    for (const box of side.error ? [] : boxesOf(side.tokens)) {
      const element = document.createElement("i");
      const spans = compared ? side.spans.slice(place, place + box.tokens.length) : [];
      element.title = tipOf(box, place);
      if (box.tokens[0].special) element.classList.add("special");
      if (spans.some((span) => !other.has(span))) element.classList.add("differs");
      fill(element, box);
      side.boxes.append(element);
      place += box.tokens.length;
    }
    const rate = side.tokens.length ? (bytes.length / side.tokens.length).toFixed(2) : "–";
    side.facts.textContent = side.error || `${many(side.tokens.length, "token")}, ${rate} bytes per token`;
    side.facts.classList.toggle("wrong", Boolean(side.error));
    side.ids.textContent = side.tokens.map((token) => token.id).join(" ");
  });
  verdict.textContent = wordsOf(bytes.length, compared);
}

function wordsOf(size, compared) {
  const [first, second] = sides.map((side) => side.tokens.length);
  if (sides.some((side) => side.error)) return "";
  const fewer = Math.min(first, second), more = Math.max(first, second);
  const which = first < second ? "The first" : "The second";
  const share = (100 * (1 - fewer / more)).toFixed(1);
  const counts = first === second ? "Both have the same number of tokens" : `${which} has ${share} % fewer tokens`;
  const differing = sides.map((side) => side.differing.toLocaleString("en")).join(" and ");
  let told = "; their boundaries are the same";
  if (!compared) told = "; boundaries are not compared, because a tokenizer changes the text";
  else if (differing !== "0 and 0") told = `; outlined tokens with other boundaries: ${differing}`;
  return `${many(size, "byte")}. ${counts}${told}.`;
}

async function begin() {
  for (const [number, side] of sides.entries()) {
    side.tokenizer = await PageTokenizer.read(document.getElementById("model-" + number).textContent);
  }
  let asked = 0;
  typed.addEventListener("input", () => { cancelAnimationFrame(asked); asked = requestAnimationFrame(show); });
  show();
  document.body.dataset.ready = "yes";
}

begin().catch((error) => { verdict.textContent = `This browser can't show it: ${error.message}`; });
