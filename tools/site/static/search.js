// Search in the pages' texts: the index is fetched when the field is first used.
(() => {
  const form = document.getElementById("search"), field = document.getElementById("q"), list = document.getElementById("found");
  const shown = 10, around = 60;
  let index;

  const load = () => index ??= fetch(form.dataset.index).then(r => r.json());

  // score is how well a page matches all words; 0: it lacks one.
  const score = (page, words) => {
    const title = page.title.toLowerCase(), text = page.text.toLowerCase();
    let sum = 0;
    for (const word of words) {
      const times = text.split(word).length - 1, named = title.includes(word);
      if (!times && !named) return 0;
      sum += Math.min(times, 20) + (named ? 100 : 0);
    }
    return sum;
  };

  const item = (page, word) => {
    const li = document.createElement("li"), a = document.createElement("a"), p = document.createElement("p");
    a.href = page.url;
    a.textContent = `${page.section}: ${page.title}`;
    const at = Math.max(0, page.text.toLowerCase().indexOf(word) - around);
    p.textContent = page.text.slice(at, at + 2 * around).replace(/\s+/g, " ");
    li.append(a, p);
    return li;
  };

  const search = async () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    const pages = words.length ? await load() : [];
    const found = pages.map(page => ({page, score: score(page, words)})).filter(f => f.score > 0)
      .sort((a, b) => b.score - a.score).slice(0, shown);
    list.replaceChildren(...found.map(f => item(f.page, words[0])));
    if (words.length && !found.length) {
      const li = document.createElement("li");
      li.textContent = "No page has these words.";
      list.append(li);
    }
    list.hidden = !words.length;
  };

  field.addEventListener("focus", load, {once: true});
  field.addEventListener("input", search);
  form.addEventListener("submit", event => {
    event.preventDefault();
    list.querySelector("a")?.click();
  });
  form.addEventListener("keydown", event => {
    if (event.key === "Escape") { field.value = ""; search(); }
  });
})();
