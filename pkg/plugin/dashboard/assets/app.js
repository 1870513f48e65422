// The page is rendered by the server. This script puts the server's next versions of it into the
// document, keeps ages up to date, filters while one types, draws indexes, and follows a log.
"use strict";

// --- The stream of the page's versions ---

let stream;

function follow() {
  if (stream) stream.close();
  const source = (stream = new EventSource(document.documentElement.dataset.base + "stream?page=" + encodeURIComponent(location.pathname + location.search)));
  source.addEventListener("page", (event) => {
    if (source !== stream) return; // of the address before
    const next = JSON.parse(event.data);
    const page = document.createElement("div");
    page.id = "page";
    page.innerHTML = next.html;
    const focused = document.activeElement;
    morph(document.getElementById("page"), page);
    if (focused && focused.isConnected && focused !== document.activeElement) focused.focus({ preventScroll: true });
    document.title = next.title + " · Jobferry";
    document.documentElement.dataset.version = Number(document.documentElement.dataset.version || 0) + 1;
    refresh();
  });
  source.onopen = () => (document.getElementById("stopped").hidden = true);
  source.onerror = () => {
    if (source !== stream) return;
    document.getElementById("stopped").hidden = false;
    if (source.readyState === EventSource.CLOSED) setTimeout(() => source === stream && follow(), 3000);
  };
}

// ours are attributes that the reader or this script sets.
const ours = new Set(["open", "data-read", "data-drawn", "data-at"]);

// morph makes one element like another. Nodes that stay keep focus, selection and scroll position.
function morph(node, next) {
  for (const { name } of [...node.attributes]) {
    if (!next.hasAttribute(name) && !ours.has(name)) node.removeAttribute(name);
  }
  for (const { name, value } of next.attributes) {
    if (node.getAttribute(name) !== value) node.setAttribute(name, value);
  }
  if (node.hasAttribute("data-keep")) return;
  if (node.tagName === "INPUT") {
    if (node !== document.activeElement) node.value = next.value;
    return;
  }
  if (node.tagName === "SELECT" && node === document.activeElement) return;
  children(node, next);
  if (node.tagName === "SELECT") node.value = next.value;
}

const keyOf = (node) => (node.nodeType === Node.ELEMENT_NODE ? node.id : "");

// alike reports whether a node can become the other.
function alike(node, next) {
  return node.nodeType === next.nodeType && node.nodeName === next.nodeName && keyOf(node) === keyOf(next);
}

// place puts an element of the page where another is: with its scroll position, where the browser can.
const place = (node, child, at) => (node.moveBefore ? node.moveBefore(child, at) : node.insertBefore(child, at));

function children(node, next) {
  const keyed = new Map();
  for (const child of node.children) if (child.id) keyed.set(child.id, child);
  let at = node.firstChild;
  for (const wanted of [...next.childNodes]) {
    let found = keyOf(wanted) ? keyed.get(wanted.id) : null;
    if (!found && at && alike(at, wanted)) found = at;
    if (!found || !alike(found, wanted)) {
      node.insertBefore(wanted, at);
      continue;
    }
    if (found === at) at = at.nextSibling;
    else place(node, found, at);
    if (found.nodeType === Node.ELEMENT_NODE) morph(found, wanted);
    else if (found.nodeValue !== wanted.nodeValue) found.nodeValue = wanted.nodeValue;
  }
  while (at) {
    const after = at.nextSibling;
    at.remove();
    at = after;
  }
}

// --- Ages, as kubectl writes them ---

function age(seconds) {
  const s = Math.max(0, Math.floor(seconds));
  const m = Math.floor(s / 60), h = Math.floor(s / 3600), d = Math.floor(s / 86400), y = Math.floor(d / 365);
  if (s < 120) return s + "s";
  if (m < 10) return s % 60 ? m + "m" + (s % 60) + "s" : m + "m";
  if (m < 180) return m + "m";
  if (h < 8) return m % 60 ? h + "h" + (m % 60) + "m" : h + "h";
  if (h < 48) return h + "h";
  if (h < 192) return h % 24 ? d + "d" + (h % 24) + "h" : d + "d";
  if (d < 730) return d + "d";
  return d % 365 && y < 8 ? y + "y" + (d % 365) + "d" : y + "y";
}

function ages() {
  for (const time of document.querySelectorAll("time[data-age]")) {
    const text = age((Date.now() - Date.parse(time.dateTime)) / 1000);
    if (time.textContent !== text) time.textContent = text;
  }
}

// --- The address is the page's state ---

// visit shows another state of this page.
function visit(url, replace) {
  if (url.pathname + url.search !== location.pathname + location.search) history[replace ? "replaceState" : "pushState"](null, "", url);
  follow();
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-soft]");
  if (!link || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
  event.preventDefault();
  wanted = link.hash;
  visit(new URL(link.href), false);
});

// wanted is the part of the page that a link leads to, once it's there.
let wanted = "";

function reveal() {
  const target = wanted && document.querySelector(wanted);
  if (!target) return;
  wanted = "";
  target.scrollIntoView({ block: "nearest" });
  const lines = target.querySelector("[tabindex]");
  if (lines) lines.focus({ preventScroll: true });
}

addEventListener("popstate", () => {
  if (document.activeElement) document.activeElement.blur(); // its value is of the address before
  follow();
});

let typing;

function filtered(form) {
  const url = new URL(form.action);
  for (const [name, value] of new FormData(form)) if (value) url.searchParams.set(name, value);
  visit(url, true);
}

document.addEventListener("input", (event) => {
  const form = event.target.closest("#filter");
  if (!form) return;
  clearTimeout(typing);
  typing = setTimeout(() => filtered(form), 200);
});

document.addEventListener("submit", (event) => {
  if (event.target.id !== "filter") return;
  event.preventDefault();
  clearTimeout(typing);
  filtered(event.target);
});

document.addEventListener("keydown", (event) => {
  const search = document.getElementById("q") || document.getElementById("find-text");
  const writes = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
  if (event.key === "/" && search && !writes && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    search.focus();
    search.select();
  }
});

// --- The map of indexes ---

const stateNames = ["waiting", "running", "completed", "failed"];
const maps = new WeakMap();

class IndexMap {
  constructor(element) {
    this.element = element;
    this.canvas = element.querySelector("canvas");
    this.at = -1;
    this.canvas.addEventListener("pointermove", (event) => this.select(this.under(event)));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("click", (event) => this.openLog(this.under(event)));
    this.canvas.addEventListener("focus", () => this.select(Math.max(this.at, 0)));
    new ResizeObserver(() => this.draw()).observe(element);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  async update() {
    const { version, by } = this.element.dataset;
    if (version !== this.version) {
      this.version = version;
      const answer = await fetch(this.element.dataset.src).catch(() => null);
      if (!answer || !answer.ok) return (this.version = ""); // tried again with the next version of the page
      const map = await answer.json();
      if (!map || version !== this.version) return;
      this.workers = map.workers || [];
      this.states = new Uint8Array(map.total);
      this.on = new Int16Array(map.total);
      let i = 0;
      for (const [length, state, worker] of map.runs) {
        this.states.fill(state, i, i + length);
        this.on.fill(worker, i, i + length);
        i += length;
      }
    }
    this.by = by;
    this.draw();
  }

  // layout chooses the largest cells with which the map isn't higher than wide.
  layout() {
    const width = Math.floor(this.element.clientWidth), total = this.states.length;
    this.cell = Math.max(2, Math.min(14, Math.floor(Math.sqrt((width * Math.min(width, 420)) / total))));
    this.columns = Math.max(1, Math.floor(width / this.cell));
    this.rows = Math.ceil(total / this.columns);
    return width;
  }

  colours() {
    const style = getComputedStyle(this.element);
    const value = (name) => style.getPropertyValue(name).trim();
    return {
      states: stateNames.map((name) => value("--index-" + name)),
      workers: [...Array(8).keys()].map((n) => value("--worker-" + n)),
      mark: value("--text"),
    };
  }

  draw() {
    if (!this.states || !this.element.clientWidth) return;
    const width = this.layout(), height = this.rows * this.cell, scale = devicePixelRatio || 1;
    const colours = this.colours(), size = this.cell - (this.cell > 4 ? 1 : 0);
    this.canvas.width = width * scale;
    this.canvas.height = height * scale;
    this.canvas.style.height = height + "px";
    const pen = this.canvas.getContext("2d");
    pen.scale(scale, scale);
    for (let i = 0; i < this.states.length; i++) {
      const state = this.states[i], worker = this.on[i];
      pen.fillStyle = this.by === "worker" ? (worker < 0 ? colours.states[0] : colours.workers[worker % 8]) : colours.states[state];
      pen.globalAlpha = this.by === "worker" && state === 0 ? 0.35 : 1;
      pen.fillRect((i % this.columns) * this.cell, Math.floor(i / this.columns) * this.cell, size, size);
    }
    pen.globalAlpha = 1;
    if (this.at >= 0) {
      pen.strokeStyle = colours.mark;
      pen.lineWidth = 2;
      pen.strokeRect((this.at % this.columns) * this.cell - 1, Math.floor(this.at / this.columns) * this.cell - 1, this.cell + 1, this.cell + 1);
    }
    this.element.dataset.drawn = this.version;
  }

  under(event) {
    const box = this.canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left) / this.cell), row = Math.floor((event.clientY - box.top) / this.cell);
    return Math.min(column, this.columns - 1) + row * this.columns;
  }

  // openLog shows the log of an index, or that it has none.
  openLog(index) {
    if (!this.states || index < 0 || index >= this.states.length) return;
    const url = new URL(location.href);
    for (const name of ["pod", "on", "container", "previous"]) url.searchParams.delete(name);
    url.searchParams.set("index", index);
    wanted = "#log";
    visit(url, false);
  }

  key(event) {
    if (event.key === "Enter") return this.openLog(this.at);
    const last = this.states.length - 1, page = this.columns * 10;
    const step = {
      ArrowRight: 1, ArrowLeft: -1, ArrowDown: this.columns, ArrowUp: -this.columns,
      PageDown: page, PageUp: -page, Home: -this.at, End: last - this.at,
    }[event.key];
    if (step === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.select(Math.max(0, Math.min(last, this.at + step)));
  }

  select(index) {
    if (!this.states || index < 0 || index >= this.states.length || index === this.at) return;
    this.at = index;
    const worker = this.workers[this.on[index]];
    document.getElementById("index-readout").textContent =
      "Index " + index.toLocaleString("en") + ": " + stateNames[this.states[index]] + (worker ? ", " + worker : "");
    this.frame = this.frame || requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }
}

// --- The log ---

const maxLines = 5000, maxCharacters = 4e6;
let appended = 0, added = 0; // chunks and their characters, since the log was cut to its last lines
let reading = { source: "", stop: new AbortController() };

function readLog() {
  const lines = document.getElementById("log-lines");
  const source = lines ? lines.dataset.src : "";
  if (source === reading.source && (!lines || lines.dataset.read === source)) return;
  reading.stop.abort();
  reading = { source, stop: new AbortController() };
  if (!lines) return;
  lines.dataset.read = source;
  lines.textContent = "";
  appended = added = 0;
  streamLog(source, lines, reading.stop.signal);
}

async function streamLog(source, lines, signal) {
  const say = (text) => !signal.aborted && (document.getElementById("log-state").textContent = text);
  say("Opening the log …");
  try {
    const answer = await fetch(source, { signal });
    if (!answer.ok) return say(await answer.text());
    say("Following.");
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      append(lines, value);
    }
    say(lines.textContent ? "The log has ended." : "The log is empty.");
  } catch (error) {
    say("The log was interrupted. Reload the page to read it again.");
  }
}

// append keeps the last lines, and of long ones the last characters. It stays at the end unless the
// reader has scrolled up.
function append(lines, text) {
  const atEnd = lines.scrollHeight - lines.scrollTop - lines.clientHeight < 40;
  lines.append(text);
  added += text.length;
  if (++appended > 200 || added > maxCharacters) {
    const all = lines.textContent, last = all.slice(-maxCharacters);
    const line = last.length < all.length ? last.indexOf("\n") + 1 : 0; // where the first whole one begins
    lines.textContent = last.slice(line < last.length ? line : 0).split("\n").slice(-maxLines).join("\n");
    appended = added = 0;
  }
  if (atEnd) lines.scrollTop = lines.scrollHeight;
  findSoon();
}

// --- The search in the log ---

const maxMatches = 5000;
let matches = [], match = -1, finding;

// find marks the matches, as far as they are there, and goes some steps on from the present one.
function find(step) {
  const input = document.getElementById("find-text"), lines = document.getElementById("log-lines");
  if (!input || !lines) return;
  const text = input.value.toLowerCase();
  lines.normalize();
  matches = text ? occurrences(lines.firstChild, text) : [];
  match = matches.length ? (Math.max(match, 0) + step + matches.length) % matches.length : -1;
  document.getElementById("find-count").textContent =
    !text ? "" : !matches.length ? "no match" : match + 1 + " of " + matches.length + (matches.length === maxMatches ? " or more" : "");
  mark("match", matches);
  mark("current", match < 0 ? [] : [matches[match]]);
}

function occurrences(node, text) {
  const ranges = [], all = node ? node.data.toLowerCase() : "";
  for (let at = all.indexOf(text); at >= 0 && ranges.length < maxMatches; at = all.indexOf(text, at + text.length)) {
    if (at + text.length > node.length) break; // in lower case, some letters are longer
    const range = new Range();
    range.setStart(node, at);
    range.setEnd(node, at + text.length);
    ranges.push(range);
  }
  return ranges;
}

function mark(name, ranges) {
  if (!window.CSS || !CSS.highlights) return; // an older browser only scrolls to them
  const highlight = new Highlight();
  for (const range of ranges) highlight.add(range);
  CSS.highlights.set(name, highlight);
}

// show scrolls to the present match.
function show() {
  if (match < 0) return;
  const lines = document.getElementById("log-lines");
  const box = matches[match].getBoundingClientRect(), frame = lines.getBoundingClientRect();
  lines.scrollTop += box.top - frame.top - lines.clientHeight / 2;
  lines.scrollLeft += box.left - frame.left - lines.clientWidth / 2;
}

// findSoon looks through what was added to the log.
function findSoon() {
  const input = document.getElementById("find-text");
  if (!finding && input && input.value) {
    finding = setTimeout(() => {
      finding = 0;
      find(0);
    }, 300);
  }
}

document.addEventListener("input", (event) => {
  if (event.target.id !== "find-text") return;
  match = -1;
  find(0);
  show();
});

function findNext(step) {
  find(step);
  show();
}

document.addEventListener("keydown", (event) => {
  if (event.target.id !== "find-text" || event.key !== "Enter") return;
  event.preventDefault();
  findNext(event.shiftKey ? -1 : 1);
});

document.addEventListener("click", (event) => {
  const button = event.target.closest("#find-previous, #find-next");
  if (button) findNext(button.id === "find-next" ? 1 : -1);
});

// --- Copying ---

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-copy]");
  if (!button) return;
  const done = await navigator.clipboard.writeText(button.dataset.copy).then(() => "Copied", () => "Not copied");
  document.getElementById("said").textContent = done;
  button.textContent = done;
  setTimeout(() => {
    button.textContent = "Copy";
    document.getElementById("said").textContent = "";
  }, 2000);
});

// --- All that follows a new version of the page ---

function refresh() {
  ages();
  for (const element of document.querySelectorAll(".map")) {
    if (!maps.has(element)) maps.set(element, new IndexMap(element));
    maps.get(element).update();
  }
  readLog();
  reveal();
}

document.documentElement.dataset.script = "on";
setInterval(ages, 1000);
refresh();
follow();
