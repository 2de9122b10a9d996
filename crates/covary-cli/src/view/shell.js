"use strict";
(() => {
  const at = (id) => document.getElementById(id);
  const form = at("choices"), status = at("status"), frame = at("report"), main = frame.parentElement;
  let latest = 0, open = true;

  const option = (value, words) => {
    const made = document.createElement("option");
    made.value = value;
    made.textContent = words;
    return made;
  };

  const say = (words, wrong) => {
    status.textContent = words;
    status.classList.toggle("wrong", wrong === true);
  };

  const choices = () => {
    const asked = new URLSearchParams();
    for (const [name, value] of new FormData(form)) if (value !== "") asked.set(name, value);
    return asked;
  };

  const gone = () => {
    open = false;
    say("covary has ended. Start it again with `covary view` to go on.", true);
  };

  const compute = async () => {
    const mine = ++latest;
    main.setAttribute("aria-busy", "true");
    say("Computing …");
    let found;
    try {
      found = await (await fetch("compute?" + choices())).json();
    } catch {
      return gone();
    }
    if (mine !== latest) return;
    main.removeAttribute("aria-busy");
    if (found.error) return say(found.error, true);
    frame.src = found.page;
    at("save").href = found.page;
    at("save").hidden = false;
    say(found.words);
  };

  form.addEventListener("change", compute);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    compute();
  });

  const begin = async () => {
    const offered = await (await fetch("offered")).json();
    document.title = offered.name + " – covary view";
    at("name").textContent = offered.name;
    for (const name of ["model", "rotation", "color"])
      form.elements[name].append(...offered[name].map(([value, words]) => option(value, words)));
    for (const [name, value] of Object.entries(offered.now)) form.elements[name].value = value;
    if (offered.sample) {
      at("sample").textContent = offered.sample;
      at("sample").hidden = false;
    }
    await compute();
  };

  // The command ends some time after the page was closed; as long as it is open it says so now and then.
  setInterval(() => {
    if (open) fetch("alive").catch(gone);
  }, 5000);
  addEventListener("pagehide", () => navigator.sendBeacon("closed"));
  begin().catch(gone);
})();
