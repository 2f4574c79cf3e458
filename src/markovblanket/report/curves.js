// Density, trace and autocorrelation of one edge, as three figures. Curves come as bytes in base64, 0 to 255 between
// two ends.
"use strict";
const drawCurves = (() => {
  const W = 320, H = 150, LEFT = 38, RIGHT = 8, BOTTOM = 26, TOP = 8;
  const across = (low, high) => d3.scaleLinear([low, high], [LEFT, W - RIGHT]);
  const upwards = (low, high, top = TOP) => d3.scaleLinear([low, high], [H - BOTTOM, top]);
  const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const within = (text, low, high) => Array.from(bytes(text), (v) => low + ((high - low) * v) / 255);

  function figure(title, x, y) {
    const made = document.createElement("figure"), caption = document.createElement("figcaption");
    caption.textContent = title;
    const svg = d3.create("svg").attr("viewBox", `0 0 ${W} ${H}`).attr("role", "img").attr("aria-label", title);
    const axis = (move) => svg.append("g").attr("class", "axis").attr("transform", move);
    axis(`translate(0,${H - BOTTOM})`).call(d3.axisBottom(x).ticks(5).tickSizeOuter(0));
    if (y) axis(`translate(${LEFT},0)`).call(d3.axisLeft(y).ticks(4).tickSizeOuter(0));
    made.append(caption, svg.node());
    return [made, svg];
  }

  function density({ density: { zero, from, to, curve } }) {
    const ends = zero ? [from, to, 0] : [from, to];
    const x = curve ? across(Math.min(...ends), Math.max(...ends)) : across(-1, 1), y = upwards(0, 1, 16);
    const [made, svg] = figure("Density of the partial correlation", x, null);
    const points = within(curve, 0, 1 - zero).map((v, i, all) => [x(from + ((to - from) * i) / (all.length - 1)), y(v)]);
    svg.append("path").attr("class", "area").attr("d", d3.area().y0(y(0))(points));
    svg.append("path").attr("class", "curve").attr("d", d3.line()(points));
    if (zero) bar(svg, x(0), y(0), y(zero), `${(100 * zero).toFixed(1)} % exactly 0`);
    return made;
  }

  function bar(svg, x, bottom, top, text) {
    const right = x < W / 2;
    svg.append("rect").attr("class", "zeros").attr("x", x - 2).attr("y", top).attr("width", 4).attr("height", bottom - top);
    svg.append("text").attr("class", "zeros").attr("x", x + (right ? 5 : -5)).attr("y", 10)
      .attr("text-anchor", right ? "start" : "end").text(text);
  }

  function chains(svg, curves, colours, x, y) {
    const line = d3.line((_, i) => x(i), (v) => y(v));
    curves.forEach((curve, c) => svg.append("path").attr("class", "chain").attr("stroke", colours[c % colours.length])
      .attr("d", line(curve)));
  }

  function trace({ range: [low, high], draws, every, trace: coded }, colours) {
    const pad = low === high ? 1 : 0, x = across(0, draws), y = upwards(low - pad, high + pad).nice();
    const [made, svg] = figure("Trace, draw by draw, a colour per chain", x, y);
    chains(svg, coded.map((chain) => within(chain, low, high)), colours, (i) => x(i * every), y);
    return made;
  }

  function autocorrelation({ draws, autocorrelation: coded }, colours) {
    const curves = coded.map((chain) => within(chain, -1, 1)), bound = 2 / Math.sqrt(draws);
    const x = across(0, Math.max(curves[0].length - 1, 1)), y = upwards(-0.25, 1).clamp(true);
    const [made, svg] = figure("Autocorrelation by lag; grey: range for independent draws", x, y);
    svg.insert("rect", "g").attr("class", "band").attr("x", LEFT).attr("width", W - RIGHT - LEFT)
      .attr("y", y(bound)).attr("height", y(-bound) - y(bound));
    chains(svg, curves, colours, x, y);
    return made;
  }

  return (known, colours) => [density(known), trace(known, colours), autocorrelation(known, colours)];
})();
