// Histograms of the columns, drawn when they are asked for. User strings are only ever set as text.
"use strict";
(() => {
  const all = JSON.parse(document.getElementById("bars").textContent);
  const box = document.getElementById("histograms");
  const more = document.getElementById("all-histograms");
  const search = document.getElementById("search");
  const WIDTH = 320, HEIGHT = 170, LEFT = 42, RIGHT = 10, TOP = 8, BOTTOM = 24;
  let view = 0, open = false;

  function draw(tag, attributes, text) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (text !== undefined) element.textContent = text;
    return element;
  }

  // Round counts between nothing and the most.
  function levels(of) {
    if (of.least) {
      const found = [];
      for (let n = 1; n <= of.most; n *= 10) found.push(n);
      return found;
    }
    const ten = 10 ** Math.floor(Math.log10(of.most / 2));
    const step = Math.max(1, ten * [1, 2, 5].findLast((m) => m * ten <= of.most / 2));
    return [0, 1, 2, 3, 4].map((i) => i * step).filter((n) => n <= of.most);
  }

  function histogram(of) {
    const n = of.data.length, right = WIDTH - RIGHT, bottom = HEIGHT - BOTTOM;
    const x = (share) => LEFT + share * (right - LEFT);
    const share = of.least
      ? (count) => Math.log(Math.max(count, of.least) / of.least) / Math.log(1.5 * of.most / of.least)
      : (count) => count / (1.15 * of.most);
    const y = (count) => bottom - Math.min(1, share(count)) * (bottom - TOP);
    const svg = draw("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "histogram", role: "img",
      "aria-label": `Histogram of ${of.name} of data and reference` });
    const band = of.bands[view];
    if (band) {
      svg.append(draw("rect", { class: "band", x: x(band[0]), y: TOP,
        width: Math.max(1, x(band[1]) - x(band[0])), height: bottom - TOP }));
    }
    const bars = (counts, name, inset) => counts.forEach((count, i) => {
      if (count <= of.least) return;
      svg.append(draw("rect", { class: name, x: x((i + inset) / n), y: y(count),
        width: (1 - 2 * inset) * (x(1) - x(0)) / n, height: bottom - y(count) }));
    });
    bars(of.reference, "reference", 0);
    bars(of.picked[view], "picked", 0.2);
    of.data.forEach((count, i) => {
      if (!count) return;
      const at = x((i + 0.5) / n), spread = Math.sqrt(count);
      svg.append(draw("line", { class: "points", x1: at, x2: at, y1: y(count - spread), y2: y(count + spread) }),
        draw("circle", { class: "points", cx: at, cy: y(count), r: 2.2 }));
    });
    svg.append(draw("path", { class: "axis", d: `M${LEFT} ${TOP}V${bottom}H${right}` }));
    for (const level of levels(of)) {
      svg.append(draw("line", { class: "axis", x1: LEFT - 4, x2: LEFT, y1: y(level), y2: y(level) }),
        draw("text", { x: LEFT - 6, y: y(level) + 3.5, "text-anchor": "end" }, level.toLocaleString("en")));
    }
    of.ticks.forEach(([at, label]) => {
      const anchor = at > 0.93 ? "end" : at < 0.04 ? "start" : "middle";
      svg.append(draw("line", { class: "axis", x1: x(at), x2: x(at), y1: bottom, y2: bottom + 4 }),
        draw("text", { x: x(at), y: HEIGHT - 7, "text-anchor": anchor }, label));
    });
    return svg;
  }

  function figure(i) {
    const of = all.columns[i], whole = document.createElement("figure");
    const name = document.createElement("h4"), caption = document.createElement("figcaption");
    name.textContent = of.name;
    caption.textContent = [of.least ? `Logarithmic counts, from ${of.least}.` : "", of.beyond].join(" ").trim();
    whole.append(name, histogram(of), caption);
    return whole;
  }

  function show() {
    const words = search.value.toLowerCase();
    let order = all.order[view];
    if (words) order = order.filter((i) => all.columns[i].name.toLowerCase().includes(words));
    box.replaceChildren(...(open ? order : order.slice(0, all.first)).map(figure));
    more.hidden = order.length <= all.first;
    more.textContent = open ? `Show the first ${all.first} only` : `Show all ${order.length} histograms`;
    more.ariaExpanded = String(open);
  }

  more.addEventListener("click", () => { open = !open; show(); });
  search.addEventListener("input", show);
  document.getElementById("search-label").hidden = all.columns.length <= all.first;
  document.addEventListener("view", (event) => { view = event.detail; show(); });
  addEventListener("beforeprint", () => { if (all.columns.length <= 60) { open = true; show(); } });
  show();
})();
