// The text under the pointer; pages call `tip.show(text, event)` and `tip.hide()`.
const tip = (() => {
  const box = document.getElementById("tip");
  const place = (e) => {
    const x = Math.min(e.clientX + 14, innerWidth - box.offsetWidth - 8);
    const below = e.clientY + 18;
    const y = below + box.offsetHeight > innerHeight ? e.clientY - box.offsetHeight - 12 : below;
    box.style.left = x + "px";
    box.style.top = y + "px";
  };
  return {
    place,
    show(text, e) {
      box.textContent = text;
      box.hidden = false;
      place(e);
    },
    hide() {
      box.hidden = true;
    },
  };
})();
