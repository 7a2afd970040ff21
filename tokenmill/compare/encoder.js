// Encodes text with the same IDs as `Tokenizer.encode`, using the data from tokenmill/compare/page_model.py.
// text_cuts.js splits the text into pieces. The merge with the lowest rank is applied first, the leftmost of equals.
"use strict";

const ARRAYS = { uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array };

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
      if (this.unknown < 0) { // only a special token
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

  // Returns the tokens of a text: [{id, bytes: bytes of the token (null: unknown text), special}].
  encode(text) {
    const tokens = [];
    for (const [start, part, id] of cutAt(text, this.passes[0])) {
      if (id !== null) { tokens.push({ id, bytes: binary(utf8.encode(part)), special: true }); continue; }
      const normalized = this.first.apply(part, SECTION);
      for (const [place, section, other] of cutAt(normalized, this.passes[1])) {
        if (other !== null) {
          tokens.push({ id: other, bytes: binary(utf8.encode(section)), special: true });
          continue;
        }
        const changed = this.phases[0].steps.apply(section, place || start ? SECTION : INPUT);
        this.encodeSection(changed, 0, tokens);
      }
    }
    return tokens;
  }

  encodeSection(text, number, tokens) {
    for (const [piece, dropped] of this.phases[number].pieces(text)) {
      if (dropped && this.gapsAreErrors) {
        throw new CannotBeExact(`The pattern leaves out ${JSON.stringify(piece.slice(0, 20))}, which is an error.`);
      }
      if (dropped) continue;
      if (number + 1 < this.phases.length) {
        this.encodeSection(this.phases[number + 1].steps.apply(piece, SECTION), number + 1, tokens);
      } else {
        for (const index of this.indexesOf(piece)) {
          tokens.push({ id: this.ids[index], bytes: this.standsFor(index), special: false });
        }
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
      const each = Array.from(bytes, (byte) => this.indexOf.get(`<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`));
      if (index !== undefined) { symbols.push(...pending, index); pending = []; }
      else if (byteFallback && !each.includes(undefined)) symbols.push(...each);
      else {
        if (!fuseUnk) symbols.push(...pending);
        pending = this.unknown < 0 ? [] : [this.unknown];
      }
    }
    return this.merged([...symbols, ...pending]);
  }

  // Returns the rank of a pair, undefined if it does not merge. In rank files, the rank is the merged entry.
  rankOf(left, right) {
    if (this.isRankFile) return this.indexOf.get(this.keys[left] + this.keys[right]);
    return this.ranks.get(left * this.keys.length + right);
  }

  // Merges symbols: the lowest rank first, then the leftmost. The heap has keys rank * 2^32 + place.
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
      if (rankAt[place] !== (lowest - place) / 2 ** 32) continue; // the pair no longer exists
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
