// The page is complete without this: titles of tiles are shown by the browser itself. Here they are shown at once, and
// the lines of a tile's life light up in the source.
(() => {
  const tip = document.getElementById("tip");
  const lines = [...document.querySelectorAll("aside li")];
  for (const tile of document.querySelectorAll("svg.map .tile")) {
    const title = tile.querySelector("title");
    const text = title.textContent;
    tile.setAttribute("aria-label", text);
    title.remove();
    const { line, from, to } = tile.dataset;
    tile.addEventListener("pointerenter", () => {
      tip.textContent = text;
      tip.hidden = false;
      lines.forEach((li, n) => {
        li.classList.toggle("life", +from > 0 && n + 1 >= +from && n + 1 <= +to);
        li.classList.toggle("declared", n + 1 === +line);
      });
    });
    tile.addEventListener("pointermove", (e) => {
      const x = Math.min(e.clientX + 14, innerWidth - tip.offsetWidth - 8);
      const below = e.clientY + 18;
      const y = below + tip.offsetHeight > innerHeight ? e.clientY - tip.offsetHeight - 12 : below;
      tip.style.left = x + "px";
      tip.style.top = y + "px";
    });
    tile.addEventListener("pointerleave", () => {
      tip.hidden = true;
      lines.forEach((li) => li.classList.remove("life", "declared"));
    });
    tile.addEventListener("click", () => {
      lines[+line - 1]?.scrollIntoView({ block: "center", behavior: "smooth" });
    });
  }
})();
