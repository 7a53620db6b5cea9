// What pages are nicer with: names completed in SQL, and a word while a question is being answered.
"use strict";
(() => {
  const sql = document.getElementById("sql");
  const names = [...new Set([...document.querySelectorAll("[data-table],[data-column]")]
    .map((one) => one.dataset.table || one.dataset.column))];
  const words = ["select", "count(*)", "avg(", "sum(", "median(", "from", "where", "group by", "order by", "having"];

  if (sql && names.length) {
    const list = document.createElement("ul");
    list.className = "names";
    list.id = "sql-names";
    list.setAttribute("role", "listbox");
    list.setAttribute("aria-label", "Names that fit");
    list.hidden = true;
    sql.after(list);
    sql.setAttribute("aria-controls", list.id);
    let at = 0;

    const begun = () => (/[\w."]*$/.exec(sql.value.slice(0, sql.selectionStart)) || [""])[0];
    const fitting = () => {
      const start = begun().toLowerCase();
      return start ? [...names, ...words].filter((one) => one.toLowerCase().startsWith(start) && one !== start).slice(0, 8) : [];
    };
    const show = () => {
      const found = fitting();
      at = 0;
      list.hidden = !found.length;
      list.replaceChildren(...found.map((one, place) => {
        const item = document.createElement("li");
        item.textContent = one;
        item.setAttribute("role", "option");
        item.setAttribute("aria-selected", String(place === 0));
        item.addEventListener("mousedown", (event) => { event.preventDefault(); take(one); });
        return item;
      }));
    };
    const take = (name) => {
      const start = sql.selectionStart - begun().length;
      const plain = /^[a-z_][a-z0-9_]*$/.test(name) || words.includes(name) ? name : `"${name.replaceAll('"', '""')}"`;
      sql.setRangeText(plain, start, sql.selectionStart, "end");
      list.hidden = true;
      sql.focus();
    };
    const move = (step) => {
      const items = [...list.children];
      at = (at + step + items.length) % items.length;
      items.forEach((one, place) => one.setAttribute("aria-selected", String(place === at)));
    };
    sql.addEventListener("input", show);
    sql.addEventListener("blur", () => { list.hidden = true; });
    sql.addEventListener("keydown", (event) => {
      if (list.hidden) return;
      if (event.key === "Tab" && !event.shiftKey) { event.preventDefault(); take(list.children[at].textContent); }
      if (event.key === "Escape") { list.hidden = true; }
      if (event.key === "ArrowDown") { event.preventDefault(); move(1); }
      if (event.key === "ArrowUp") { event.preventDefault(); move(-1); }
    });
  }

  for (const form of document.querySelectorAll("form")) {
    form.addEventListener("submit", (event) => {
      const pressed = event.submitter;
      if (!pressed || !pressed.textContent) return;
      // After the browser has read the form: a button that is off would not be sent.
      setTimeout(() => { pressed.disabled = true; pressed.textContent = "Working …"; }, 0);
    });
  }
  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
})();
