// Plots, and a table that follows the region chosen and what is selected in the plots. User strings
// are only ever set as text.
"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const json = (id) => byId(id) && JSON.parse(byId(id).textContent);
  const make = (tag, text) => {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const table = json("rows"), axes = json("axes");
  const named = byId("picked-name") && byId("picked-name").textContent;
  let source = null; // of the points; its indices are those of table.rows
  let chosen = []; // what is selected of it
  let order = null; // [column, 1 or -1]
  let page = 0;
  let view = 0; // the region chosen; 0 are all rows

  const columns = table ? table.columns : [];
  const imageColumn = columns.findIndex((column) => column.kind === "image");
  const textColumn = columns.findIndex((column) => column.role === "text");
  const nameColumn = columns.findIndex((column) => column.role === "name");

  function picture(cells) {
    const image = make("img");
    image.src = cells[imageColumn];
    image.alt = "row " + cells[0];
    return image;
  }

  // As the page shows it: columns of logarithms have their decimals below each other.
  const shown = (cell, c) => columns[c].digits === undefined ? String(cell) : cell.toFixed(columns[c].digits);

  function visible() {
    const words = byId("filter").value.toLowerCase();
    let indices = view ? [...table.views[view]] : table.rows.map((_, i) => i);
    if (chosen.length) {
      const kept = new Set(chosen);
      indices = indices.filter((i) => kept.has(i));
    }
    if (words) {
      indices = indices.filter((i) => table.rows[i].some(
        (cell, c) => c !== imageColumn && cell !== null && shown(cell, c).toLowerCase().includes(words)));
    }
    if (order) {
      const [column, sign] = order;
      const compare = columns[column].kind === "text" ? (a, b) => a.localeCompare(b) : (a, b) => a - b;
      const value = (i) => table.rows[i][column];
      // Rows without a value come last either way.
      indices.sort((i, j) => (value(i) === null) - (value(j) === null) ||
        (value(i) === null ? 0 : sign * compare(value(i), value(j))));
    }
    return indices;
  }

  function drawTable() {
    const indices = visible();
    page = Math.max(0, Math.min(page, Math.ceil(indices.length / table.page) - 1));
    const from = page * table.page, now = indices.slice(from, from + table.page);
    const body = byId("table").tBodies[0];
    body.replaceChildren(...now.map((i) => {
      const line = make("tr");
      table.rows[i].forEach((cell, c) => {
        const item = make("td", cell === null || c === imageColumn ? "" : shown(cell, c));
        item.className = columns[c].kind + (columns[c].value ? " value" : "");
        if (c === imageColumn && cell !== null) item.append(picture(table.rows[i]));
        line.append(item);
      });
      return line;
    }));
    byId("table").querySelectorAll("th").forEach((head, c) => {
      if (order && order[0] === c) head.ariaSort = order[1] > 0 ? "ascending" : "descending";
      else head.removeAttribute("aria-sort");
    });
    const rows = (n) => n.toLocaleString("en") + (n === 1 ? " row" : " rows");
    byId("found").textContent = rows(indices.length) + (view ? ` of ${table.names[view]}` : "") +
      (chosen.length ? " of the selection" : "");
    const count = (n) => n.toLocaleString("en");
    byId("range").textContent = now.length
      ? `${count(from + 1)} to ${count(from + now.length)} of ${count(indices.length)}` : "none";
    byId("previous").disabled = page === 0;
    byId("next").disabled = from + table.page >= indices.length;
    document.querySelectorAll(".unselect").forEach((button) => { button.disabled = !chosen.length; });
  }

  function point(i) {
    const list = make("dl");
    table.rows[i].forEach((cell, c) => {
      if (c === imageColumn || cell === null) return;
      const pair = [make("dt", columns[c].label), make("dd", shown(cell, c))];
      if (columns[c].long || columns[c].label.length > 20) pair.forEach((item) => { item.className = "all"; });
      list.append(...pair);
    });
    const parts = [list];
    if (imageColumn >= 0 && table.rows[i][imageColumn]) parts.unshift(picture(table.rows[i]));
    byId("pointed").replaceChildren(...parts);
  }

  function select(indices) {
    chosen = [...indices];
    page = 0;
    drawTable();
    if (!byId("chosen")) return;
    byId("chosen").hidden = !chosen.length;
    byId("pointed").parentElement.classList.toggle("live", chosen.length > 0);
    byId("count").textContent = chosen.length === 1 ? "1 row selected," : chosen.length + " rows selected,";
    if (chosen.length === 1) point(chosen[0]);
    const first = [...chosen].sort((a, b) => a - b).slice(0, 12);
    byId("examples").replaceChildren(...first.map((i) => {
      const cells = table.rows[i], item = make("li");
      if (imageColumn >= 0 && cells[imageColumn]) item.append(picture(cells));
      const row = make("span", String(nameColumn < 0 ? cells[0] : cells[nameColumn]));
      row.className = "row";
      item.append(row);
      if (textColumn >= 0) item.append(make("span", cells[textColumn].slice(0, 120)));
      return item;
    }));
    byId("examples").classList.toggle("tiles", textColumn < 0 || !columns[textColumn].long);
  }

  // The rows of a region, or the flagged ones, in the planes; and the bounds of the region.
  function mark() {
    if (!source) return;
    const picked = new Int8Array(source.data.row.length);
    for (const i of table ? table.views[view] : []) picked[i] = 9;
    source.data = { ...source.data, picked };
    const bounds = axes.boxes[view];
    ["plane0", "plane1"].forEach((name, i) => {
      const box = source.document.get_model_by_name("box" + i);
      if (!box) return;
      const [across, up] = [...document.querySelectorAll(`select.axis[data-plane=${name}]`)].map((one) => one.value);
      const plot = source.document.get_model_by_name(name), far = (range) => [range.start, range.end];
      const x = bounds[across] || (bounds[up] && far(plot.x_range)), y = bounds[up] || (bounds[across] && far(plot.y_range));
      if (x && y) box.setv({ left: x[0], right: x[1], bottom: y[0], top: y[1] });
      box.visible = Boolean(x && y);
    });
  }

  function look(number) {
    view = number;
    document.querySelectorAll("input[name=view]").forEach((one) => { one.checked = Number(one.value) === view; });
    document.querySelectorAll("select.view").forEach((one) => { one.value = String(view); });
    const name = byId("picked-name");
    if (name) name.textContent = view ? `data rows of ${table.names[view]}` : named;
    if (source && chosen.length) source.selected.indices = [];
    if (table) select([]);
    mark();
    document.dispatchEvent(new CustomEvent("view", { detail: view }));
  }

  function csv() {
    const quote = (cell) => {
      if (cell === null) return "";
      // A spreadsheet would run a text that starts like a formula.
      const text = typeof cell === "string" && /^[=+\-@\t\r]/.test(cell) ? "'" + cell : String(cell);
      return /[",\r\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
    };
    const kept = columns.map((_, c) => c).filter((c) => c !== imageColumn);
    const lines = [kept.map((c) => columns[c].label), ...visible().map((i) => kept.map((c) => table.rows[i][c]))];
    return lines.map((line) => line.map(quote).join(",") + "\r\n").join("");
  }

  function download() {
    const link = make("a");
    link.href = URL.createObjectURL(new Blob(["\ufeff" + csv()], { type: "text/csv" }));
    link.download = "rows.csv";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  const dark = matchMedia("(prefers-color-scheme: dark)");
  function paint(isDark) {
    const ink = isDark ? "#e6edf3" : "#1f2328";
    document.body.classList.toggle("dark", isDark); // for print: what is painted stays as it is
    for (const plot of Bokeh.documents.flatMap((one) => one.roots())) {
      for (const axis of [...plot.below, ...plot.left]) {
        axis.setv({ axis_label_text_color: ink, major_label_text_color: ink, axis_line_color: ink,
          major_tick_line_color: ink, minor_tick_line_color: ink });
      }
      for (const legend of [...plot.above, ...plot.center]) {
        if (legend.type === "Legend") legend.label_text_color = ink;
      }
      for (const renderer of plot.renderers) {
        if (renderer.name !== "ink") continue;
        renderer.glyph.line_color = { value: ink };
        if (renderer.glyph.fill_color && renderer.glyph.fill_color.value !== null) renderer.glyph.fill_color = { value: ink };
      }
    }
  }

  if (table) {
    byId("filter").addEventListener("input", () => { page = 0; drawTable(); });
    byId("download").addEventListener("click", download);
    byId("previous").addEventListener("click", () => { page -= 1; drawTable(); });
    byId("next").addEventListener("click", () => { page += 1; drawTable(); });
    document.querySelectorAll(".unselect").forEach((button) => button.addEventListener("click", () => {
      if (source) source.selected.indices = [];
      select([]);
    }));
    byId("table").tHead.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (!button) return;
      const column = Number(button.dataset.column);
      // Numbers start with the largest, texts with the first.
      const first = columns[column].kind === "text" ? 1 : -1;
      order = order && order[0] === column ? [column, -order[1]] : [column, first];
      page = 0;
      drawTable();
    });
    drawTable();
    if (byId("pointed")) point(0);
  }
  document.querySelectorAll("input[name=view], select.view").forEach((one) => {
    one.addEventListener("change", () => look(Number(one.value)));
  });
  document.querySelectorAll("button.all").forEach((button) => button.addEventListener("click", () => {
    const open = byId(button.getAttribute("aria-controls")).classList.toggle("open");
    button.ariaExpanded = String(open);
    button.textContent = button.textContent.replace(open ? "Show all" : "Show fewer than", open ? "Show fewer than" : "Show all");
  }));

  // What is folded away on the screen belongs on paper.
  const folded = [...document.querySelectorAll("details")];
  addEventListener("beforeprint", () => folded.forEach((one) => { one.open = true; }));

  const plots = json("plots");
  Bokeh.embed.embed_items(plots.docs, plots.items).then(() => {
    paint(dark.matches);
    dark.addEventListener("change", () => paint(dark.matches));
    source = Bokeh.documents.map((one) => one.get_model_by_name("data")).find(Boolean) || null;
    if (source) {
      // A finger that moves over a plot scrolls the page, until a tool is chosen.
      if (matchMedia("(pointer: coarse)").matches) {
        for (const name of ["plane0", "plane1"]) {
          if (!source.document.get_model_by_name(name)) continue;
          for (const tool of source.document.get_model_by_name(name).toolbar.tools) {
            if (tool.type === "BoxSelectTool") tool.active = false;
          }
        }
      }
      document.querySelectorAll("select.axis").forEach((choice) => choice.addEventListener("change", () => {
        const { field, plane } = choice.dataset, key = choice.value;
        const plot = source.document.get_model_by_name(plane);
        (field === "y" || field === "v" ? plot.left : plot.below)[0].axis_label = axes.labels[key];
        for (const name of ["data", "reference", "kernels"]) {
          const one = source.document.get_model_by_name(name);
          if (one) one.data = { ...one.data, [field]: one.data[key] };
        }
        mark();
      }));
      source.selected.properties.indices.change.connect(() => table && select(source.selected.indices));
      source.inspect.connect(() => {
        if (!table || !source.inspected.indices.length) return;
        point(Math.min(...source.inspected.indices));
        byId("pointed").parentElement.classList.add("live");
      });
    }
    look(0);
    document.body.dataset.ready = "yes";
  });
})();
