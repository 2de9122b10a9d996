"use strict";
// Everything here is a convenience: without it the page says the same.
(() => {
  const all = (where, what) => [...where.querySelectorAll(what)];

  const theme = document.getElementById("theme");
  theme.addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });

  // What a mark says, at once and where it is, instead of the browser's own slow title.
  const tip = document.getElementById("tip");
  for (const title of all(document, "svg g > title")) {
    title.parentNode.dataset.tip = title.textContent;
    title.remove();
  }
  const place = (x, y) => {
    const { width, height } = tip.getBoundingClientRect();
    tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - width - 4)) + "px";
    tip.style.top = (y + 18 + height > innerHeight ? y - height - 10 : y + 18) + "px";
  };
  document.addEventListener("pointermove", (event) => {
    const mark = event.target.closest?.("[data-tip]");
    tip.hidden = !mark;
    if (mark) {
      tip.textContent = mark.dataset.tip;
      place(event.clientX, event.clientY);
    }
  });
  document.addEventListener("pointerleave", () => { tip.hidden = true; });

  // Series of a legend: its entries in the figure, and buttons below it for the keyboard, turn them off.
  const set = (where, key, on) => {
    for (const g of all(where, "[data-series]")) if (g.dataset.series === key) g.classList.toggle("off", !on);
    for (const g of all(where, "[data-key]")) if (g.dataset.key === key) g.classList.toggle("pale", !on);
  };
  for (const figure of all(document, "figure")) {
    const series = new Set(all(figure, "[data-series]").map((g) => g.dataset.series));
    const keys = [...new Set(all(figure, "[data-key]").map((g) => g.dataset.key))].filter((k) => series.has(k));
    if (keys.length < 2) continue;
    for (const key of keys) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = key;
      button.setAttribute("aria-pressed", "true");
      const toggle = () => {
        const on = button.getAttribute("aria-pressed") !== "true";
        button.setAttribute("aria-pressed", String(on));
        set(figure, key, on);
      };
      button.addEventListener("click", toggle);
      for (const g of all(figure, "[data-key]")) if (g.dataset.key === key) g.addEventListener("click", toggle);
      figure.querySelector(".keys").append(button);
    }
  }

  // Files of what is shown: made here, asked of nobody.
  const save = (text, type, name) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };
  const source = document.querySelector("h1").textContent.replace(/[^\p{L}\p{N}_-]+/gu, "-").slice(0, 60);
  // The figure as it is shown: in the colors of the page, without the series that are off.
  const drawing = (figure) => {
      const shown = all(figure, "svg").find((s) => s.getBoundingClientRect().width > 0);
      const copy = shown.cloneNode(true);
      const [, , width, height] = copy.getAttribute("viewBox").split(" ");
      copy.removeAttribute("style");
      copy.setAttribute("width", width);
      copy.setAttribute("height", height);
      for (const g of all(copy, ".off")) g.remove();
      // Colors of the page become those of the file.
      const colors = getComputedStyle(document.documentElement);
      const text = new XMLSerializer().serializeToString(copy);
      return [text.replace(/var\((--c\d+)\)/g, (_, name) => colors.getPropertyValue(name).trim()), Number(width), Number(height)];
  };
  const named = (figure, ending) => `${source}-${figure.dataset.figure}.${ending}`;
  const savers = {
    svg: (figure) => save(drawing(figure)[0], "image/svg+xml", named(figure, "svg")),
    // Three pixels for each of the screen: about 290 for an inch.
    png: (figure) => {
      const [text, width, height] = drawing(figure);
      const image = new Image();
      image.addEventListener("load", () => {
        const canvas = document.createElement("canvas");
        [canvas.width, canvas.height] = [3 * width, 3 * height];
        const context = canvas.getContext("2d");
        context.fillStyle = getComputedStyle(figure).backgroundColor;
        context.fillRect(0, 0, canvas.width, canvas.height);
        context.drawImage(image, 0, 0, canvas.width, canvas.height);
        canvas.toBlob((blob) => save(blob, "image/png", named(figure, "png")), "image/png");
      });
      image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text);
    },
    csv: async (figure) => {
      const data = figure.querySelector("template.data");
      let text = data.content.textContent;
      // Those of large figures are deflated.
      if (data.dataset.packed) {
        const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
        const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream(data.dataset.packed));
        text = await new Response(stream).text();
      }
      save(text, "text/csv", named(figure, "csv"));
    },
  };
  for (const button of all(document, "[data-save]")) {
    button.addEventListener("click", () => savers[button.dataset.save](button.closest("figure")));
  }
  // Numbers as programs read them; what a spreadsheet would take for a formula stays text.
  const field = (cell) => {
    const plain = cell.textContent.trim().replace(/\u2212/g, "-");
    const digits = plain.replace(/[\u202f\u2009]/g, "");
    if (digits !== "" && !Number.isNaN(Number(digits))) return digits;
    const text = /^[=+@-]/.test(plain) ? `'${plain}` : plain;
    return /[",\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
  };
  for (const table of all(document, "table.sortable")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "csv";
    button.textContent = "CSV";
    const region = table.closest("[role=region]");
    const what = region?.getAttribute("aria-label") ?? "table";
    button.setAttribute("aria-label", `Download as CSV: ${what}`);
    button.addEventListener("click", () => {
      const lines = [...table.rows].map((row) => [...row.cells].map(field).join(","));
      save(lines.join("\n") + "\n", "text/csv", `${source}-${what.toLowerCase().replace(/\s+/g, "-")}.csv`);
    });
    (region ?? table).after(button);
  }

  // Sorting: numbers by value, whatever stands around them; empty ones last.
  const value = (text) => {
    const plain = text.replace(/\u2212/g, "-").replace(/[\u202f\s,]/g, "").replace("%", "");
    return plain === "" || Number.isNaN(Number(plain)) ? (/^-?\d/.test(plain) ? parseFloat(plain) : null) : Number(plain);
  };
  for (const table of all(document, "table.sortable")) {
    const heads = all(table, "thead th");
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") !== "ascending";
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const body = table.tBodies[0];
        const numbers = head.dataset.sort === "number";
        const keyed = [...body.rows].map((row) => {
          const text = row.cells[column].textContent;
          return [numbers ? value(text) : text.toLocaleLowerCase(), row];
        });
        keyed.sort(([a], [b]) => {
          if (a === null || b === null) return (a === null) - (b === null);
          const order = numbers ? a - b : a.localeCompare(b);
          return up ? order : -order;
        });
        body.append(...keyed.map(([, row]) => row));
      });
    });
  }

  const only = document.getElementById("only");
  if (only) {
    const rows = [...document.getElementById("cells").tBodies[0].rows];
    const text = (cell) => cell.textContent.toLocaleLowerCase();
    const fits = (row, wanted) =>
      all(row, "[data-has]").some((c) => text(c).includes(wanted)) || all(row, "[data-is]").some((c) => text(c) === wanted);
    only.addEventListener("input", () => {
      const wanted = only.value.trim().toLocaleLowerCase();
      let shown = 0;
      rows.forEach((row) => {
        row.hidden = wanted !== "" && !fits(row, wanted);
        shown += !row.hidden;
      });
      document.getElementById("shown").textContent = wanted ? `${shown} of ${rows.length}` : "";
    });
  }

  // A figure on the whole window, to zoom and move.
  const large = document.getElementById("large");
  const stage = large.querySelector(".stage");
  let home = null;
  let view = null;
  const svg = () => all(stage, "svg").find((s) => s.getBoundingClientRect().width > 0);
  const show = (box) => {
    view = box;
    for (const s of all(stage, "svg")) s.setAttribute("viewBox", box.join(" "));
  };
  const zoom = (factor, at) => {
    const [x, y, w, h] = view;
    const size = Math.min(home[2], Math.max(home[2] / 40, w * factor)) / w;
    const [cx, cy] = at ?? [x + w / 2, y + h / 2];
    show([cx - (cx - x) * size, cy - (cy - y) * size, w * size, h * size]);
  };
  // The middle of the view stays on the figure.
  const within = (from, size, start, whole) => Math.min(start + whole - size / 2, Math.max(start - size / 2, from));
  const move = (dx, dy) => {
    const [x, y, w, h] = view;
    show([within(x + dx, w, home[0], home[2]), within(y + dy, h, home[1], home[3]), w, h]);
  };
  const point = (event) => {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg().getScreenCTM().inverse());
    return [at.x, at.y];
  };
  const close = () => large.close();
  large.addEventListener("close", () => document.body.append(tip));
  stage.addEventListener("click", (event) => {
    const key = event.target.closest("[data-key]");
    if (key) set(stage, key.dataset.key, key.classList.contains("pale"));
  });
  for (const button of all(document, ".enlarge")) {
    button.addEventListener("click", () => {
      const figure = button.closest("figure");
      const drawn = all(figure, "svg").map((s) => s.parentNode === figure ? s : s.parentNode);
      stage.replaceChildren(...drawn.map((node) => node.cloneNode(true)));
      home = stage.querySelector("svg").getAttribute("viewBox").split(" ").map(Number);
      view = home;
      large.setAttribute("aria-label", button.getAttribute("aria-label"));
      large.append(tip);
      large.showModal();
    });
  }
  const actions = { in: () => zoom(0.7), out: () => zoom(1 / 0.7), reset: () => show(home), close };
  for (const button of all(large, "[data-zoom]")) button.addEventListener("click", () => actions[button.dataset.zoom]());
  stage.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(event.deltaY < 0 ? 0.85 : 1 / 0.85, point(event));
  }, { passive: false });
  let held = null;
  stage.addEventListener("pointerdown", (event) => { held = point(event); });
  stage.addEventListener("pointermove", (event) => {
    if (!held || !event.buttons) return;
    const [x, y] = point(event);
    move(held[0] - x, held[1] - y);
  });
  addEventListener("pointerup", () => { held = null; });
  large.addEventListener("keydown", (event) => {
    const step = view[2] / 12;
    const keys = {
      "+": actions.in, "=": actions.in, "-": actions.out, 0: actions.reset,
      ArrowLeft: () => move(-step, 0), ArrowRight: () => move(step, 0), ArrowUp: () => move(0, -step), ArrowDown: () => move(0, step),
    };
    if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
  });

  // The bar of contents follows: its link to the part that is being read is marked.
  const links = all(document, "nav a");
  const parts = links.map((link) => document.querySelector(link.getAttribute("href")));
  const follow = () => {
    const line = 0.3 * innerHeight;
    let now = parts.findLastIndex((part) => part.getBoundingClientRect().top <= line);
    if (scrollY + innerHeight >= document.documentElement.scrollHeight - 2) now = parts.length - 1;
    links.forEach((link, k) => {
      if (k === now) link.setAttribute("aria-current", "location");
      else link.removeAttribute("aria-current");
    });
  };
  addEventListener("scroll", follow, { passive: true });
  addEventListener("resize", follow);
  follow();

  // Paper shows what is folded, and repeats headings on every page, which browsers do for headings without buttons.
  let folded = [];
  let bare = [];
  addEventListener("beforeprint", () => {
    bare = all(document, "th > button").map((button) => [button.parentNode, button]);
    for (const [head, button] of bare) head.replaceChildren(...button.childNodes);
    folded = all(document, "details:not([open])");
    for (const d of folded) d.open = true;
  });
  addEventListener("afterprint", () => {
    for (const d of folded) d.open = false;
    for (const [head, button] of bare) {
      button.append(...head.childNodes);
      head.append(button);
    }
    bare = [];
  });
})();
