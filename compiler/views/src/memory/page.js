// The page is complete without this: titles of tiles are shown by the browser itself. Here they are shown at once, and
// the lines of a tile's life light up in the source.
(() => {
  const lines = [...document.querySelectorAll("aside li")];
  for (const tile of document.querySelectorAll("svg.map .tile")) {
    const title = tile.querySelector("title");
    const text = title.textContent;
    tile.setAttribute("aria-label", text);
    title.remove();
    const { line, from, to } = tile.dataset;
    tile.addEventListener("pointerenter", (e) => {
      tip.show(text, e);
      lines.forEach((li, n) => {
        li.classList.toggle("life", +from > 0 && n + 1 >= +from && n + 1 <= +to);
        li.classList.toggle("declared", n + 1 === +line);
      });
    });
    tile.addEventListener("pointermove", tip.place);
    tile.addEventListener("pointerleave", () => {
      tip.hide();
      lines.forEach((li) => li.classList.remove("life", "declared"));
    });
    tile.addEventListener("click", () => {
      lines[+line - 1]?.scrollIntoView({ block: "center", behavior: "smooth" });
    });
  }
})();
