// Text to ids, as `Tokenizer.encode` gives them, with what bpe/comparison/page_model.py wrote of a tokenizer.
//
// Bytes are strings of characters below 256 ("binary strings"), so that they can be keys. Pieces of a text are found by
// the tables of the core (bpe/pretokenization/tables.py), merges go by their rank, the leftmost of equals first.
"use strict";

const ARRAYS = { uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array };
const utf8 = new TextEncoder();

function binary(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return text;
}

function* numbers(bytes) { // what `varints` wrote
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

// -- normalizers -------------------------------------------------------------------------------------------------------

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

const SECTION = 1, INPUT = 2; // a text between two added tokens; that which a whole input begins with

class Steps {
  constructor(steps, arrays) {
    this.steps = steps;
    this.arrays = arrays;
    this.sums = new Map(); // by name: code point -> checksum of what becomes of it
    this.known = new Map(); // "NFC é" -> whether the browser does as the tokenizer
  }

  apply(text, start) {
    for (const [kind, first, second] of this.steps) {
      if (kind === "form") text = this.checked(first, text, (part) => part.normalize(first));
      else if (kind === "lowercase") text = this.checked(kind, text, (part) => Array.from(part, (c) => c.toLowerCase()).join(""));
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
      throw new CannotBeExact(`The Unicode tables of this browser and of the tokenizer differ at ${told}: ids would not be exact.`);
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

// -- pieces ------------------------------------------------------------------------------------------------------------

class Phase {
  constructor(header, prefix, arrays) {
    Object.assign(this, header); // initial, and due, atEnd or end, rights
    for (const name of ["then", "pageOf", "pages", "rows", "rowOf"]) this[name] = arrays[prefix + name];
    this.steps = new Steps(header.changes, arrays);
  }

  classOf(point) { return this.pages[this.pageOf[point >> 6] * 64 + (point & 63)]; }

  // [the piece's text, whether it is left out] each.
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
      moves.map(([register, start]) => [register, at(start)]).forEach(([register, value]) => { registers[register] = value; });
    }
    if (characters.length) this.atEnd[state].forEach(add);
    return found;
  }

  goBack(characters) { // two_way.py: forward to the end, then back from there
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

// -- the tokenizer -----------------------------------------------------------------------------------------------------

class PageTokenizer {
  static async read(base64) {
    const packed = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new PageTokenizer(await new Response(stream).arrayBuffer());
  }

  constructor(buffer) {
    const size = new DataView(buffer).getUint32(0, true);
    Object.assign(this, JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, size))));
    const arrays = {};
    let at = 4 + size;
    for (const [name, type, count] of this.arrays) {
      const bytes = count * ARRAYS[type].BYTES_PER_ELEMENT;
      arrays[name] = new ARRAYS[type](buffer.slice(at, at + bytes));
      at += bytes;
    }
    this.first = new Steps(this.normalizer, arrays);
    this.phases = this.phases.map((phase, number) => new Phase(phase, number + ".", arrays));
    this.readEntries(arrays);
    this.passes = [null, null].map((_, pass) => tokenSearch(this.tokens, pass));
    this.pieceIds = new Map();
  }

  readEntries(arrays) {
    const all = binary(arrays.entries);
    this.keys = [];
    this.indexOf = new Map();
    this.ids = [];
    let at = 0, id = 0;
    const steps = numbers(arrays.ids);
    for (const length of numbers(arrays.lengths)) {
      const key = all.slice(at, at += length);
      this.indexOf.set(key, this.keys.length);
      this.keys.push(key);
      this.ids.push(id += steps.next().value);
    }
    this.unknown = -1;
    if (this.text && this.text.unkId !== null) {
      this.unknown = this.ids.indexOf(this.text.unkId);
      if (this.unknown < 0) { // a special token alone
        this.unknown = this.keys.length;
        this.keys.push(null);
        this.ids.push(this.text.unkId);
      }
    }
    this.ranks = new Map(); // left * entries + right -> rank
    this.made = [];
    if (this.isRankFile) return;
    const lefts = numbers(arrays.leftLengths);
    let index = 0;
    for (const step of numbers(arrays.made)) {
      index += step % 2 ? -(step + 1) / 2 : step / 2;
      const key = this.keys[index], cut = lefts.next().value;
      const pair = this.indexOf.get(key.slice(0, cut)) * this.keys.length + this.indexOf.get(key.slice(cut));
      this.ranks.set(pair, this.made.length);
      this.made.push(index);
    }
  }

  // What becomes of a text: [{id, bytes: what the token stands for (null: unknown text), special}].
  encode(text) {
    const tokens = [];
    for (const [start, part, id] of cutAt(text, this.passes[0])) {
      if (id !== null) { tokens.push({ id, bytes: binary(utf8.encode(part)), special: true }); continue; }
      const normalized = this.first.apply(part, SECTION);
      for (const [place, section, other] of cutAt(normalized, this.passes[1])) {
        if (other !== null) { tokens.push({ id: other, bytes: binary(utf8.encode(section)), special: true }); continue; }
        const changed = this.phases[0].steps.apply(section, place || start ? SECTION : INPUT);
        this.encodeSection(changed, 0, tokens);
      }
    }
    return tokens;
  }

  encodeSection(text, number, tokens) {
    for (const [piece, dropped] of this.phases[number].pieces(text)) {
      if (dropped && this.gapsAreErrors) throw new CannotBeExact(`The pattern leaves out ${JSON.stringify(piece.slice(0, 20))}, which is an error.`);
      if (dropped) continue;
      if (number + 1 < this.phases.length) {
        this.encodeSection(this.phases[number + 1].steps.apply(piece, SECTION), number + 1, tokens);
      } else {
        for (const index of this.indexesOf(piece)) tokens.push({ id: this.ids[index], bytes: this.standsFor(index), special: false });
      }
    }
  }

  indexesOf(piece) {
    let found = this.pieceIds.get(piece);
    if (!found) {
      found = this.text ? this.ofCharacters(piece) : this.ofBytes(piece);
      if (this.pieceIds.size > 20000) this.pieceIds.clear();
      if (piece.length < 1000) this.pieceIds.set(piece, found);
    }
    return found;
  }

  ofBytes(piece) {
    const bytes = this.fromAlphabet
      ? Array.from(piece).filter((character) => BYTE_OF.has(character)).map((character) => BYTE_OF.get(character))
      : utf8.encode(piece);
    const keys = Array.from(bytes, (byte) => String.fromCharCode(byte));
    const whole = this.ignoreMerges ? this.indexOf.get(keys.join("")) : undefined;
    return whole !== undefined ? [whole] : this.merged(keys.map((key) => this.indexOf.get(key)));
  }

  ofCharacters(piece) { // bpe/reference.py, encode_text_pretoken
    const { byteFallback, fuseUnk } = this.text, symbols = [];
    const whole = this.ignoreMerges ? this.indexOf.get(binary(utf8.encode(piece))) : undefined;
    if (whole !== undefined) return [whole];
    let pending = [];
    for (const character of piece) {
      const bytes = utf8.encode(character), index = this.indexOf.get(binary(bytes));
      const each = Array.from(bytes, (byte) => this.indexOf.get("<0x" + byte.toString(16).toUpperCase().padStart(2, "0") + ">"));
      if (index !== undefined) { symbols.push(...pending, index); pending = []; }
      else if (byteFallback && !each.includes(undefined)) symbols.push(...each);
      else {
        if (!fuseUnk) symbols.push(...pending);
        pending = this.unknown < 0 ? [] : [this.unknown];
      }
    }
    return this.merged([...symbols, ...pending]);
  }

  // Rank of a pair and the entry that it makes; rank undefined: it does not merge.
  rankOf(left, right) {
    return this.isRankFile ? this.indexOf.get(this.keys[left] + this.keys[right]) : this.ranks.get(left * this.keys.length + right);
  }

  // What merges make of symbols: the lowest rank first, of equals the leftmost. A heap of rank * 2^32 + place.
  merged(symbols) {
    const size = symbols.length, next = new Int32Array(size + 1), before = new Int32Array(size + 1);
    const rankAt = new Array(size), heap = [];
    const look = (place) => {
      rankAt[place] = next[place] < size ? this.rankOf(symbols[place], symbols[next[place]]) : undefined;
      if (rankAt[place] !== undefined) push(heap, rankAt[place] * 2 ** 32 + place);
    };
    for (let place = 0; place <= size; place++) { next[place] = place + 1; before[place] = place - 1; }
    for (let place = 0; place < size; place++) look(place);
    while (heap.length) {
      const lowest = pop(heap), place = lowest % 2 ** 32;
      if (rankAt[place] !== (lowest - place) / 2 ** 32) continue; // of a pair that is no more
      const right = next[place];
      symbols[place] = this.isRankFile ? rankAt[place] : this.made[rankAt[place]];
      rankAt[right] = undefined;
      next[place] = next[right];
      before[next[right]] = place;
      look(place);
      if (before[place] >= 0) look(before[place]);
    }
    const left = [];
    for (let place = 0; place < size; place = next[place]) left.push(symbols[place]);
    return left;
  }

  standsFor(index) {
    const key = this.keys[index];
    if (!this.text || key === null) return key;
    if (this.ids[index] === this.text.unkId) return null;
    const byte = this.text.byteFallback && /^<0x([0-9A-F]{2})>$/.exec(key);
    if (byte) return String.fromCharCode(parseInt(byte[1], 16));
    return this.text.hasSpaces ? key.split("\xe2\x96\x81").join(" ") : key;
  }
}

function push(heap, value) {
  let at = heap.length;
  for (; at > 0 && heap[(at - 1) >> 1] > value; at = (at - 1) >> 1) heap[at] = heap[(at - 1) >> 1];
  heap[at] = value;
}

function pop(heap) {
  const lowest = heap[0], value = heap.pop(), size = heap.length;
  let at = 0;
  for (let child = 1; child < size; child = 2 * at + 1) {
    if (child + 1 < size && heap[child + 1] < heap[child]) child++;
    if (heap[child] >= value) break;
    heap[at] = heap[child];
    at = child;
  }
  if (size) heap[at] = value;
  return lowest;
}

// -- added tokens ------------------------------------------------------------------------------------------------------

const SPACE = /^[\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]$/; // White_Space; \s is another set

// Of one pass (0: those that are not normalized) by first UTF-16 unit, longest first: [text, id, lstrip, rstrip] each.
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

// [start, text, id or null for what lies between] each; leftmost first, of those at one place the longest. Then lstrip
// and rstrip take white space, in which others are found all the same (special_tokens.hpp).
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
