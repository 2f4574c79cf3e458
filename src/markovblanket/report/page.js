// The page is complete without this file: the picture and the table of the default rule are plain SVG and HTML. Here
// the slider, the search and clicks hide, show and move their elements. D3 does zoom, motion, scales and axes. A force
// layout in the browser would place nodes differently at every visit, so positions are part of the page. Names are
// inserted by textContent alone.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const all = (selector) => Array.from(document.querySelectorAll(selector));
  document.documentElement.classList.remove("nojs");

  const slider = byId("slider"), search = byId("search"), network = byId("network");
  const lines = all("#lines > g"), body = document.querySelector("#edges tbody");
  const nodes = all("#nodes > g").sort((a, b) => a.dataset.node - b.dataset.node); // the query is drawn last, on top
  const rows = Array.from(body.rows), headers = all("#edges thead th");
  const ends = data.ends, edges = data.edges;
  if (edges.bayes_factor) edges.bayes_factor = edges.bayes_factor.map((value) => (value === "inf" ? Infinity : value));
  const words = data.names.map((name) => name.toLowerCase());
  // Two meanings of the slider: how sure each edge must be, and the false discovery rate of all.
  const meanings = {
    sure: { min: slider.min, max: slider.max, value: slider.value, stages: data.stages },
    share: data.share && { min: 1, max: data.share.last, value: data.share.start, stages: data.share.stages },
  };
  const begin = slider.value;
  let meaning = "sure";
  let stage = null, chosen = null, opener = null, active = null, zoom = null;

  // Which edges ----------------------------------------------------------------------------------------------------

  // The default rule takes the place of the whole number nearest to it.
  const threshold = () => (Number(slider.value) === data.usual.place ? data.usual.threshold : Number(slider.value) / 100);
  const sureEnough = (k, least) => (data.rule === "probability" ? data.sure[k] >= least : data.sure[k] > (1 + least) / 2);
  const passes = (k) => (meaning === "share" ? data.enters[k] <= Number(slider.value) : sureEnough(k, threshold()));
  const found = (k, text) => ends[k].some((end) => words[end].includes(text));
  // The probability that an edge is wrong: that it is absent or, without exact zeros, has the other sign.
  const wrong = (k) => 1 - data.sure[k];

  function mean(next) {
    meanings[meaning].value = slider.value;
    meaning = next;
    const { min, max, value } = meanings[meaning];
    Object.assign(slider, { min: 0, max: 100 }, { min, max, value }); // a value must lie between its ends
    for (const one of all(".by-sure, .by-share")) one.hidden = !one.classList.contains(`by-${meaning}`);
    all("input[name=meaning]").forEach((one) => { one.checked = one.value === meaning; });
  }

  function update() {
    const text = search.value.trim().toLowerCase();
    const seen = new Set(), matched = new Set();
    let passing = 0, matching = 0, errors = 0;
    ends.forEach((pair, k) => {
      const inside = passes(k), hit = inside && (text === "" || found(k, text));
      lines[k].classList.toggle("out", !inside);
      lines[k].classList.toggle("faint", inside && !hit);
      rows[k].classList.toggle("out", !hit);
      if (inside) pair.forEach((end) => seen.add(end));
      if (hit) pair.forEach((end) => matched.add(end));
      if (inside) { passing += 1; errors += wrong(k); if (hit) matching += 1; }
    });
    nodes.forEach((node, i) => {
      const isQuery = node.classList.contains("query");
      node.classList.toggle("out", !isQuery && !seen.has(i));
      node.classList.toggle("faint", text !== "" && !matched.has(i) && !words[i].includes(text));
    });
    network.classList.toggle("crowded", passing > 300);
    network.classList.toggle("searching", text !== "");
    enlarge(text === "" ? new Set() : matched);
    say(passing, matching, errors, text);
    const { stages } = meanings[meaning], at = Number(slider.value);
    moveTo(meaning === "share" ? stages.find((one) => one.place >= at) : stages.filter((one) => one.place <= at).pop());
    settle();
  }

  function say(passing, matching, errors, text) {
    const percent = meaning === "share" ? `${slider.value} %` : `${Math.round(1000 * threshold()) / 10} %`, plural = passing === 1 ? "edge" : "edges";
    byId("level").textContent = percent;
    slider.setAttribute("aria-valuetext", `${percent}, ${passing} ${plural}`);
    const strong = document.createElement("b");
    strong.textContent = text ? `${matching} of ${passing} ${plural}` : `${passing.toLocaleString("en")} ${plural}`;
    const there = data.rule === "probability", byShare = meaning === "share";
    const kind = byShare ? `with an expected false ${there ? "discovery" : "sign"} rate of at most` : there ? "with a probability of at least" : "at credibility level";
    const call = there ? "to be absent" : "to have the other sign";
    const few = errors < 0.05 ? "Fewer than 0.1" : `About ${errors.toFixed(errors < 10 ? 1 : 0)}`;
    const expected = passing ? ` ${few} of them can be expected ${call}.` : "";
    byId("count").replaceChildren(strong, ` ${kind} ${percent}${text ? ", with this name" : ""}.${text ? "" : expected}`);
    network.setAttribute("aria-label", `Network of ${passing} ${plural}; the table below has the same ones`);
    byId("none").hidden = (text ? matching : passing) > 0;
  }

  // The picture ----------------------------------------------------------------------------------------------------

  const places = nodes.map((node) => node.getAttribute("transform").match(/-?[\d.]+/g).map(Number));
  const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;

  // In a large picture, names of the query and those that the search finds are drawn larger than their boxes.
  const faces = nodes.map((node) => node.querySelector(".face"));
  let large = new Set();
  function grow() {
    const scale = byId("scene").getScreenCTM().a, times = Math.min(Math.max(1, 0.9 / scale), 12);
    large.forEach((i) => faces[i].setAttribute("transform", `scale(${times})`));
  }
  function enlarge(matched) {
    large.forEach((i) => faces[i].removeAttribute("transform"));
    const some = matched.size <= 40 ? [...matched] : [];
    large = new Set(nodes.flatMap((node, i) => (node.classList.contains("query") ? [i] : [])).concat(some));
    if (some.length) byId("nodes").append(...some.map((i) => nodes[i]), ...nodes.filter((node) => node.classList.contains("query")));
    grow();
  }

  function moveTo(next) {
    const first = stage === null; // the nodes of the page are in place already
    if (first || next === stage) { stage = next; return; }
    stage = next;
    const from = places.map((place) => place.slice());
    const to = places.map((place, i) => next.at[i] || place);
    const view = d3.interpolateArray(network.getAttribute("viewBox").split(" ").map(Number), next.view);
    const draw = (t) => {
      places.forEach((place, i) => {
        place[0] = from[i][0] + t * (to[i][0] - from[i][0]);
        place[1] = from[i][1] + t * (to[i][1] - from[i][1]);
        nodes[i].setAttribute("transform", `translate(${place[0]},${place[1]})`);
      });
      lines.forEach((line, k) => {
        const [a, b] = ends[k];
        for (const stroke of line.querySelectorAll("line")) {
          stroke.setAttribute("x1", places[a][0]); stroke.setAttribute("y1", places[a][1]);
          stroke.setAttribute("x2", places[b][0]); stroke.setAttribute("y2", places[b][1]);
        }
      });
      network.setAttribute("viewBox", view(t).join(" "));
      grow();
    };
    d3.select(network).interrupt("move");
    if (still || lines.length > 600) return draw(1);
    d3.select(network).transition("move").duration(450).tween("places", () => draw);
  }

  function makeZoomable() {
    const scene = d3.select("#scene");
    zoom = d3.zoom().scaleExtent([0.5, 20])
      // The wheel and one finger scroll the page; the wheel with Ctrl, or two fingers, zoom the picture.
      .filter((event) => (event.type === "wheel" ? event.ctrlKey || event.metaKey : event.touches ? event.touches.length > 1 : !event.button))
      .on("zoom", (event) => { scene.attr("transform", event.transform); grow(); });
    const picture = d3.select(network).call(zoom).on("dblclick.zoom", null);
    byId("closer").addEventListener("click", () => picture.call(zoom.scaleBy, 1.5));
    byId("farther").addEventListener("click", () => picture.call(zoom.scaleBy, 1 / 1.5));
    byId("whole").addEventListener("click", () => picture.call(zoom.transform, d3.zoomIdentity));
    window.addEventListener("beforeprint", () => picture.call(zoom.transform, d3.zoomIdentity));
  }

  // One line of the picture can be reached by Tab; arrows go on to the others that are shown, the surest first.
  const visible = () => lines.filter((line) => !line.classList.contains("out") && !line.classList.contains("faint"));
  function settle(next) {
    const among = visible();
    if (active) active.setAttribute("tabindex", "-1");
    active = next || (among.includes(active) ? active : among[0]) || null;
    if (active) active.setAttribute("tabindex", "0");
  }
  function step(event) {
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); return open(Number(active.dataset.edge), active); }
    if (!by) return undefined;
    event.preventDefault();
    const among = visible(), k = among.indexOf(active);
    settle(among[(k + by + among.length) % among.length]);
    return active.focus();
  }

  // One edge -------------------------------------------------------------------------------------------------------

  function open(k, from) {
    close();
    chosen = k; opener = from;
    const [a, b] = ends[k].map((end) => data.names[end]);
    byId("drawer-title").textContent = `${a} ~ ${b}`;
    byId("drawer-words").textContent = inWords(k, a, b);
    byId("plots").replaceChildren(...curves(k));
    lines[k].classList.add("chosen"); rows[k].classList.add("chosen");
    document.body.classList.add("opened");
    byId("drawer").hidden = false;
    byId("drawer").focus({ preventScroll: true });
    const below = from.getBoundingClientRect().bottom - byId("drawer").getBoundingClientRect().top;
    if (below > 0) window.scrollBy(0, below + 30);
  }

  function close() {
    if (chosen === null) return;
    lines[chosen].classList.remove("chosen"); rows[chosen].classList.remove("chosen");
    document.body.classList.remove("opened");
    byId("drawer").hidden = true;
    if (opener) opener.focus({ preventScroll: true });
    chosen = opener = null;
  }

  // Numbers as the table has them.
  function inWords(k, a, b) {
    const cell = (name) => rows[k].cells[headers.findIndex((header) => header.dataset.by === name)].textContent.trim();
    const sense = edges.partial_correlation[k] > 0 ? `higher ${b} goes with higher ${a}` : `higher ${b} goes with lower ${a}`;
    const size = `${cell("partial_correlation")} (95 % interval ${cell("lower")}): all else being equal, ${sense}.`;
    if (data.rule !== "probability") return `Partial correlation ${size} Probability of this sign: ${cell("sign_probability")}.`;
    return `Probability that the edge is present: ${cell("probability")}. Partial correlation, if it is: ${size}`;
  }

  function curves(k) {
    if (data.curves[k]) return drawCurves(data.curves[k], data.chainColours);
    const note = document.createElement("p");
    note.textContent = "The curves of this edge are not part of this page: its draws were not kept, or it is not among the surest.";
    return [note];
  }

  // The table ------------------------------------------------------------------------------------------------------

  function sortBy(header) {
    const by = header.dataset.by, was = header.getAttribute("aria-sort"), text = by === "query" || by === "variable";
    const down = was ? was === "ascending" : !text && by !== "rhat";
    const place = headers.indexOf(header);
    const key = (k) => (text ? rows[k].cells[place].textContent.trim() : by === "partial_correlation" ? Math.abs(edges[by][k]) : edges[by][k]);
    const compare = (a, b) => (a === b ? 0 : a === null ? 1 : b === null ? -1 : (a < b ? -1 : 1) * (down ? -1 : 1));
    const order = rows.map((_, k) => k).sort((a, b) => compare(key(a), key(b)) || a - b);
    headers.forEach((other) => other.removeAttribute("aria-sort"));
    header.setAttribute("aria-sort", down ? "descending" : "ascending");
    body.append(...order.map((k) => rows[k]));
  }

  function makeSortable() {
    for (const header of headers.filter((one) => one.dataset.by)) {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...header.childNodes);
      header.append(button);
      button.addEventListener("click", () => sortBy(header));
    }
  }

  function save() {
    const columns = Object.keys(edges), quote = (text) => `"${text.replaceAll('"', '""')}"`;
    const kept = rows.map((_, k) => k).filter((k) => !rows[k].classList.contains("out"));
    const text = [["query", "variable", ...columns].join(","), ...kept.map((k) =>
      [...ends[k].map((end) => quote(data.names[end])), ...columns.map((name) => edges[name][k] ?? "")].join(","))].join("\n");
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text + "\n"], { type: "text/csv" }));
    link.download = "edges.csv";
    link.click();
  }

  // Start ----------------------------------------------------------------------------------------------------------

  slider.addEventListener("input", update);
  search.addEventListener("input", update);
  byId("usual").addEventListener("click", () => { mean("sure"); slider.value = begin; update(); });
  all("input[name=meaning]").forEach((one) => one.addEventListener("change", () => { mean(one.value); update(); }));
  byId("close").addEventListener("click", close);
  byId("save").addEventListener("click", save);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") close(); });
  byId("lines").addEventListener("keydown", step);
  lines.forEach((line, k) => { line.setAttribute("role", "button"); line.setAttribute("tabindex", "-1"); line.addEventListener("click", () => { settle(line); open(k, line); }); });
  nodes.forEach((node, i) => node.addEventListener("click", () => {
    const same = search.value === data.names[i];
    search.value = same ? "" : data.names[i];
    update();
  }));
  byId("edges").addEventListener("click", (event) => {
    const row = event.target.closest("tbody tr");
    if (row) open(Number(row.dataset.edge), row.querySelector("button"));
  });
  makeSortable();
  makeZoomable();
  update();
  window.addEventListener("resize", grow);
  const frame = document.querySelector(".frame"); // narrower than the picture on a phone: show its middle first
  frame.scrollLeft = (frame.scrollWidth - frame.clientWidth) / 2;
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
})();
