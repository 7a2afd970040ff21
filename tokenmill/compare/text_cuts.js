// Splits text into pieces like `Tokenizer.encode`: splits at added tokens, normalizes, and splits with the tables of the
// core (bpe/pretokenization/tables.py). The data is written by page_model.py.
//
// Bytes are strings of characters below 256 ("binary strings"), so that they can be keys.
"use strict";

const utf8 = new TextEncoder();

function binary(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return text;
}

function* numbers(bytes) { // decodes the output of `varints`
  for (let at = 0; at < bytes.length;) {
    let value = 0, scale = 1;
    for (; bytes[at] > 127; scale *= 128) value += (bytes[at++] - 128) * scale;
    yield value + bytes[at++] * scale;
  }
}

// GPT-2's byte alphabet: the character of each byte, and the byte of each character.
const ALPHABET = [], BYTE_OF = new Map();
for (let byte = 0, others = 0; byte < 256; byte++) {
  const shown = (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte !== 0xad);
  ALPHABET.push(String.fromCharCode(shown ? byte : 256 + others++));
  BYTE_OF.set(ALPHABET[byte], byte);
}

class CannotBeExact extends Error {}

// -- normalizers ----------------------------------------------------------------------------------------------------

const CRC = Uint32Array.from({ length: 256 }, (_, byte) => {
  for (let bit = 0; bit < 8; bit++) byte = byte & 1 ? (byte >>> 1) ^ 0xedb88320 : byte >>> 1;
  return byte;
});

function checksum(text) { // CRC-32 of UTF-16, little-endian
  let crc = ~0;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    crc = CRC[(crc ^ unit) & 255] ^ (crc >>> 8);
    crc = CRC[(crc ^ (unit >> 8)) & 255] ^ (crc >>> 8);
  }
  return ~crc >>> 0;
}

const SECTION = 1, INPUT = 2; // text between two added tokens; text at the start of an input

const lowerCase = (text) => Array.from(text, (character) => character.toLowerCase()).join("");

class Steps {
  constructor(steps, arrays) {
    this.steps = steps;
    this.arrays = arrays;
    this.sums = new Map(); // by name: code point -> checksum of the result
    this.known = new Map(); // "NFC é" -> whether the browser agrees with the tokenizer
  }

  apply(text, start) {
    for (const [kind, first, second] of this.steps) {
      if (kind === "form") text = this.checked(first, text, (part) => part.normalize(first));
      else if (kind === "lowercase") text = this.checked(kind, text, lowerCase);
      else if (kind === "replace") text = text.split(first).join(second);
      else if (kind === "bytes") text = Array.from(utf8.encode(text), (byte) => ALPHABET[byte]).join("");
      else if (!text) continue;
      else if (kind === "prepend") text = first + text;
      else if (!(second && start !== INPUT) && !text.startsWith(first)) text = first + text;
    }
    return text;
  }

  checked(name, text, change) {
    for (const character of text) {
      const key = name + " " + character;
      if (!this.known.has(key)) this.known.set(key, this.isSame(name, character, change));
      if (this.known.get(key)) continue;
      const told = "U+" + character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
      throw new CannotBeExact(
        `The Unicode tables of this browser and of the tokenizer differ at ${told}: ids would not be exact.`,
      );
    }
    return change(text);
  }

  isSame(name, character, change) { // normal_forms.py
    const point = character.codePointAt(0);
    if (point < 128 ? name !== "lowercase" : point >= 0xac00 && point < 0xe000) return true;
    const before = name === "lowercase" ? character : `${character}\n\u0345${character}\n${character}\u0334`;
    const after = change(before), sum = this.sumsOf(name).get(point);
    return sum === undefined ? after === before : checksum(after) === sum;
  }

  sumsOf(name) {
    if (!this.sums.has(name)) {
      let point = 0;
      const points = Array.from(numbers(this.arrays[name]), (step) => (point += step));
      this.sums.set(name, new Map(points.map((each, at) => [each, this.arrays[name + " sums"][at]])));
    }
    return this.sums.get(name);
  }
}

// -- pieces ---------------------------------------------------------------------------------------------------------

class Phase {
  constructor(header, prefix, arrays) {
    Object.assign(this, header); // initial, and due, atEnd or end, rights
    for (const name of ["then", "pageOf", "pages", "rows", "rowOf"]) this[name] = arrays[prefix + name];
    this.steps = new Steps(header.changes, arrays);
  }

  classOf(point) { return this.pages[this.pageOf[point >> 6] * 64 + (point & 63)]; }

  // Returns [text, whether it is left out] for each piece.
  pieces(text) {
    const characters = Array.from(text), size = characters.length;
    const starts = this.rows ? this.goBack(characters) : this.goOn(characters);
    const places = [...starts.keys()].sort((a, b) => a - b).filter((place) => place < size);
    return places.map((place, at) => [
      characters.slice(place, at + 1 < places.length ? places[at + 1] : size).join(""), starts.get(place),
    ]);
  }

  goOn(characters) { // tables.py, starts_of
    const found = new Map(), registers = [0, 0, 0, 0];
    let state = this.initial, place = 0;
    const at = ([age, register]) => (age ? place - age : registers[register]);
    const add = (start) => found.set(at(start), start[2]);
    for (const character of characters) {
      state = this.then[this.classOf(character.codePointAt(0)) * 256 + state];
      place++;
      const [certain, moves] = this.due[state];
      certain.forEach(add);
      const values = moves.map(([register, start]) => [register, at(start)]); // read all before writing any
      for (const [register, value] of values) registers[register] = value;
    }
    if (characters.length) this.atEnd[state].forEach(add);
    return found;
  }

  goBack(characters) { // two_way.py: forward to the end, then back
    const found = new Map(), cells = [];
    let state = this.initial, right = this.end;
    for (const character of characters) {
      const cell = this.classOf(character.codePointAt(0)) * 256 + state;
      cells.push(cell);
      state = this.then[cell];
    }
    for (let place = cells.length - 1; place >= 0; place--) {
      const before = this.rows[this.rowOf[cells[place]] * this.rights + right];
      if (before & 0x4000) found.set(place, (before & 0x8000) !== 0);
      right = before & 0x3fff;
    }
    return found;
  }
}

// -- added tokens ---------------------------------------------------------------------------------------------------

// White_Space of Unicode, which differs from \s.
const SPACE = /^[\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]$/;

// Returns the tokens of a pass (0: not normalized) by first UTF-16 unit, longest first: [text, id, lstrip, rstrip].
function tokenSearch(tokens, pass) {
  const byFirst = new Map();
  for (const [text, id, normalized, ...strips] of tokens) {
    const wanted = pass ? normalized : normalized === null ? text : null;
    if (!wanted) continue;
    if (!byFirst.has(wanted[0])) byFirst.set(wanted[0], []);
    byFirst.get(wanted[0]).push([wanted, id, ...strips]);
  }
  for (const list of byFirst.values()) list.sort(([a], [b]) => b.length - a.length);
  return byFirst;
}

// Yields [start, text, id or null for text between tokens]. The leftmost token matches, then the longest. lstrip and rstrip
// then add white space to a token, in which other tokens are still found (special_tokens.hpp).
function* cutAt(text, byFirst) {
  let done = 0;
  for (let at = 0; at < text.length;) {
    const found = (byFirst.get(text[at]) || []).find(([token]) => text.startsWith(token, at));
    if (!found) { at++; continue; }
    const [token, id, lstrip, rstrip] = found, end = at + token.length;
    let start = at, stop = end;
    if (lstrip) {
      while (start > done && SPACE.test(text[start - 1])) start--;
      start = Math.max(start, done);
    }
    while (rstrip && stop < text.length && SPACE.test(text[stop])) stop++;
    if (done < start) yield [done, text.slice(done, start), null];
    if (start < stop) yield [start, text.slice(start, stop), id];
    done = stop;
    at = end;
  }
  if (done < text.length) yield [done, text.slice(done), null];
}
