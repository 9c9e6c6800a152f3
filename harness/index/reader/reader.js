// Every operation of a run, from its history.parquet: from this machine's disk, or from the server of the page.
//
// Narrow columns of all rows are read at once, row group by row group; what an operation sent or was given (`records`)
// and its `extra` are read only of the row groups that are looked at.
import { decompress } from "fzstd";
import { parquetMetadataAsync, parquetReadObjects } from "hyparquet";

const NARROW = ["index", "time_ns", "process", "type", "f", "topic", "partition", "offset", "value", "key", "high_watermark", "error", "node", "latency_ns"];
const WIDE = ["records", "extra"];
const PAGE = 100;
const KEPT = 3; // row groups whose wide columns are kept
const WHO = { "-1": "nemesis", "-2": "runner", "-3": "replica" };
const OUTCOMES = { "-1": "?", "-2": "not appended", "-3": "acked" };
const compressors = { ZSTD: (input, size) => decompress(input, new Uint8Array(size)) };
const $ = (id) => document.getElementById(id);
const ask = $("ask");
let history = null; // {file, metadata, groups: [{start, end}], rows, places}
let hits = [];
let first = 0;
let asked = 0; // the number of the latest question; the answers to older ones are dropped

const tell = (text) => { $("told").textContent = text; };
const group = (start, columns, end) =>
  parquetReadObjects({ file: history.file, metadata: history.metadata, columns, rowStart: start, rowEnd: end, compressors });
const breathe = () => new Promise((done) => setTimeout(done));

async function open(name, content) {
  document.body.dataset.busy = "1"; // whoever reads does not want the page to be loaded again
  const file = { byteLength: content.byteLength, slice: async (from, to) => content.slice(from, to) };
  const metadata = await parquetMetadataAsync(file);
  if (!metadata.schema.some((column) => column.name === "time_ns")) throw new Error("it is Parquet, and no history");
  const groups = [];
  for (const { num_rows } of metadata.row_groups) {
    const start = groups.length ? groups[groups.length - 1].end : 0;
    groups.push({ start, end: start + Number(num_rows) });
  }
  history = { file, metadata, groups, rows: [], places: null, wide: new Map() };
  for (const [number, { start, end }] of groups.entries()) {
    tell(`reading ${name}: part ${number + 1} of ${groups.length}`);
    await breathe();
    for (const row of await group(start, NARROW, end)) history.rows.push(row);
  }
  const told = (metadata.key_value_metadata || []).find(({ key }) => key === "wrackline");
  const info = told ? JSON.parse(told.value) : {};
  fields(info);
  tell(`${info.test_id || name}: ${history.rows.length.toLocaleString("en")} events, ${info.system || ""} ${info.profile || ""}`);
  ask.hidden = $("events").hidden = false;
  await look();
}

function fields(info) {
  const seen = (key) => [...new Set(history.rows.map((row) => row[key]))];
  const add = (field, values) => {
    while (field.options.length > 1) field.remove(1);
    for (const [value, text] of values) {
      const made = document.createElement("option");
      made.value = value;
      made.textContent = text;
      field.append(made);
    }
    const wanted = new URLSearchParams(location.search).get(field.name);
    if (wanted && [...field.options].some((one) => one.value === wanted)) field.value = wanted;
  };
  add(ask.process, seen("process").sort((a, b) => a - b).map((one) => [one, WHO[one] || "process " + one]));
  add(ask.f, seen("f").sort().map((one) => [one, one]));
  const places = (info.topics || []).flatMap(({ name, partitions }) => Array.from({ length: partitions }, (_, at) => `${name}-${at}`));
  add(ask.place, places.map((one) => [one, one]));
  const text = new URLSearchParams(location.search).get("text");
  if (text) ask.text.value = text;
}

// Which partitions the records of each row are in: asked for once, when a partition is looked for.
async function placed(mine) {
  const places = new Array(history.rows.length);
  for (const [number, { start, end }] of history.groups.entries()) {
    ask.querySelector(".counted").textContent = `looking through records: part ${number + 1} of ${history.groups.length}`;
    await breathe();
    if (mine !== asked) return false;
    (await group(start, ["records"], end)).forEach(({ records }, at) => {
      if (records && records.length) places[start + at] = new Set(records.map((one) => one.partition));
    });
  }
  history.places = places;
  return true;
}

async function look() {
  const mine = ++asked;
  const place = ask.place.value && /^(.*)-(\d+)$/.exec(ask.place.value);
  if (place && !history.places && !(await placed(mine))) return;
  const text = ask.text.value.trim().toLowerCase();
  const topics = new Set(history.rows.map((row) => row.topic).filter(Boolean));
  const here = (row, at) => {
    if (row.topic ? row.topic !== place[1] : topics.size > 1) return false;
    return row.partition === +place[2] || (history.places[at] && history.places[at].has(+place[2]));
  };
  hits = [];
  history.rows.forEach((row, at) => {
    if (ask.process.value !== "" && row.process !== +ask.process.value) return;
    if (ask.f.value && row.f !== ask.f.value) return;
    if (ask.type.value && row.type !== ask.type.value) return;
    if (place && !here(row, at)) return;
    if (text && !["value", "error", "node", "key", "offset", "index"].some((key) => row[key] != null && String(row[key]).toLowerCase().includes(text))
      && !label(row.value).includes(text)) return;
    hits.push(at);
  });
  first = 0;
  const told = new URLSearchParams(location.search);
  for (const field of [ask.process, ask.place, ask.f, ask.type, ask.text]) field.value ? told.set(field.name, field.value) : told.delete(field.name);
  window.history.replaceState(null, "", "?" + told);
  await show(mine);
}

// The wide columns of the rows that are shown; the row groups looked at last are kept.
async function wide(at) {
  const number = history.groups.findIndex(({ end }) => at < end);
  const { start, end } = history.groups[number];
  if (!history.wide.has(number)) {
    if (history.wide.size >= KEPT) history.wide.delete(history.wide.keys().next().value);
    history.wide.set(number, await group(start, WIDE, end));
  }
  return history.wide.get(number)[at - start];
}

function label(value) {
  if (value == null) return "";
  if (value === -1n) return "corrupt";
  if (value === -2n) return "foreign";
  const attempt = value & 15n;
  return `p${value >> 32n}·${(value >> 4n) & 0xfffffffn}${attempt ? "/" + attempt : ""}`;
}

function what(row, { records, extra }) {
  const parts = [];
  if (row.value != null) parts.push(label(row.value));
  if (row.key != null) parts.push("key " + row.key);
  if (row.high_watermark != null) parts.push("end " + row.high_watermark);
  if (records && records.length) {
    const told = records.slice(0, 12).map((one) => `${label(one.value)} → ${one.partition}${row.type === "invoke" ? "" : "@" + (OUTCOMES[one.offset] || one.offset)}`);
    parts.push(told.join(", ") + (records.length > 12 ? ` and ${records.length - 12} more` : ""));
  }
  if (row.error) parts.push(row.error);
  if (row.node) parts.push(row.node);
  if (extra && extra !== "{}") parts.push(String(typeof extra === "string" ? extra : JSON.stringify(extra)).slice(0, 400));
  return parts.join(" · ");
}

async function show(mine) {
  const shown = hits.slice(first, first + PAGE);
  const made = [];
  for (const at of shown) {
    const row = history.rows[at];
    const place = row.partition == null ? row.topic || "" : `${row.topic || ""}-${row.partition}`;
    const cells = [row.index, (Number(row.time_ns) / 1e9).toFixed(6) + " s", WHO[row.process] || row.process, row.type, row.f, place,
      row.offset ?? "", row.latency_ns == null ? "" : (Number(row.latency_ns) / 1e6).toFixed(2) + " ms", what(row, await wide(at))];
    if (mine !== asked) return;
    const line = document.createElement("tr");
    cells.forEach((cell, number) => {
      const td = document.createElement("td");
      td.textContent = String(cell);
      td.className = number === 3 ? "op op-" + row.type : number === 8 ? "words small" : [0, 1, 2, 6, 7].includes(number) ? "num" : "nowrap";
      line.append(td);
    });
    made.push(line);
  }
  $("events").tBodies[0].replaceChildren(...made);
  const to = Math.min(first + PAGE, hits.length);
  ask.querySelector(".counted").textContent = hits.length ? `${(first + 1).toLocaleString("en")} to ${to.toLocaleString("en")} of ${hits.length.toLocaleString("en")}` : "no such event";
  $("back").disabled = first === 0;
  $("on").disabled = to >= hits.length;
}

const failed = (name) => (wrong) => tell(`${name} cannot be read: ${wrong.message}`);
$("file").addEventListener("change", async ({ target }) => {
  const [chosen] = target.files;
  if (chosen) await open(chosen.name, await chosen.arrayBuffer()).catch(failed(chosen.name));
});
ask.addEventListener("submit", (event) => event.preventDefault());
ask.addEventListener("change", (event) => { event.stopPropagation(); look(); });
$("back").addEventListener("click", () => { first = Math.max(0, first - PAGE); show(asked); });
$("on").addEventListener("click", () => { first += PAGE; show(asked); });

const wanted = new URLSearchParams(location.search).get("run");
if (wanted && location.protocol.startsWith("http")) {
  const name = decodeURIComponent(wanted.split("/").slice(-2).join("/"));
  tell(`reading ${name}`);
  fetch(wanted).then((answer) => {
    if (!answer.ok) throw new Error(`the server says ${answer.status}`);
    return answer.arrayBuffer();
  }).then((content) => open(name, content)).catch(failed(name));
} else if (wanted) {
  tell(`Choose ${decodeURIComponent(wanted)} (from the folder of this site): a page that was opened as a file may not read others by itself. With \`wrackline site serve\` it is read at once.`);
}
