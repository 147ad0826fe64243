// Without this the stages stand one below the other, each in full. Here one is shown at a time, what is far from a
// change is folded away, and a click on a line lights what stems from the same source.
(() => {
  const root = document.body;
  const sections = [...document.querySelectorAll("section.stage")];
  const tabs = [...document.querySelectorAll("nav.stages a")];
  const source = document.querySelector("aside");
  const whole = document.getElementById("whole");
  // Lines by the places that they stem from.
  const lines = new Map();
  for (const line of document.querySelectorAll("li[data-at]")) {
    for (const place of line.dataset.at.split(" ")) {
      if (!lines.has(place)) lines.set(place, []);
      lines.get(place).push(line);
    }
  }
  let current = 0;
  let lit = "";

  const into = (line, block) => line?.scrollIntoView({ block, behavior: "smooth" });
  const first = () => {
    const section = sections[current];
    return section?.querySelector("li.lit:not(.del)") ?? section?.querySelector("li.lit");
  };

  function show(n) {
    current = Math.min(Math.max(n, 0), sections.length - 1);
    sections.forEach((section, k) => section.classList.toggle("current", k === current));
    tabs.forEach((tab, k) => tab.classList.toggle("current", k === current));
    history.replaceState(null, "", "#stage=" + sections[current].id);
    into(first(), "center");
  }

  // Of a stage that has nothing of this line: what stems from the shortest statement around it, such as its loop.
  function around(section, place) {
    const [file, n] = place.split(":").map(Number);
    let [best, least] = [[], Infinity];
    for (const line of section.querySelectorAll("li[data-in]")) {
      for (const range of line.dataset.in.split(" ")) {
        const [f, first, last] = range.split(":").map(Number);
        if (f !== file || n < first || n > last || last - first > least) continue;
        if (last - first < least) [best, least] = [[], last - first];
        best.push(line);
      }
    }
    return best;
  }

  function light(places) {
    document.querySelectorAll("li.lit").forEach((line) => line.classList.remove("lit"));
    lit = places;
    for (const place of places.split(" ")) {
      for (const line of lines.get(place) ?? []) line.classList.add("lit");
    }
    sections.forEach((section, n) => {
      if (places && !section.querySelector("li.lit")) {
        places.split(" ").flatMap((place) => around(section, place)).forEach((line) => line.classList.add("lit"));
      }
      const count = section.querySelectorAll("li.lit:not(.del)").length;
      const badge = tabs[n].querySelector("u");
      badge.textContent = count;
      badge.classList.toggle("some", count > 0);
    });
  }

  function pick(line) {
    if (String(getSelection())) return;
    light(line.dataset.at === lit ? "" : line.dataset.at);
    if (source.contains(line)) into(first(), "center");
    else into(source.querySelector("li.lit"), "nearest");
  }

  document.addEventListener("click", (e) => {
    const line = e.target.closest("li[data-at]");
    if (line) return pick(line);
    const fold = e.target.closest("li.fold");
    if (fold) {
      let at = fold.nextElementSibling;
      for (; at?.classList.contains("far"); at = at.nextElementSibling) at.classList.add("open");
      fold.remove();
      return;
    }
    const tab = e.target.closest("nav.stages a");
    if (tab) {
      e.preventDefault();
      show(tabs.indexOf(tab));
    }
  });
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.key === "Escape") light("");
    else if (e.key === "ArrowLeft") show(current - 1);
    else if (e.key === "ArrowRight") show(current + 1);
    else if (e.key === "Enter" && e.target.matches("aside li[data-at]")) pick(e.target);
    else return;
    e.preventDefault();
  });
  whole.addEventListener("change", () => root.classList.toggle("whole", whole.checked));
  root.classList.add("tabbed");
  const linked = () => sections.findIndex((section) => "#stage=" + section.id === location.hash);
  addEventListener("hashchange", () => linked() >= 0 && show(linked()));
  if (sections.length) show(Math.max(linked(), 0));
  // The kernel is what the page is about, and not what stands above it in the file.
  const kernel = source.querySelector("li[data-at]");
  if (kernel) source.scrollTop = kernel.offsetTop - source.clientHeight / 8;
})();
