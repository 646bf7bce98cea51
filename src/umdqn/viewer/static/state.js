// What is looked at is in the address, so that it can be kept, shared and gone back to.

const listeners = [];

export const current = () => new URLSearchParams(location.search);

export const get = (name, otherwise = null) => current().get(name) ?? otherwise;

/** Return the address of this page with other parameters; null removes one. */
export function address(changes, only = null) {
  const query = only ? new URLSearchParams() : current();
  for (const [name, value] of Object.entries(changes)) {
    query.delete(name);
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== null && each !== undefined && each !== "") query.append(name, each);
    }
  }
  const text = query.toString().replaceAll("%2C", ",").replaceAll("%2F", "/");
  return text ? `./?${text}` : "./";
}

/** Change parameters without leaving the view. */
export function set(changes) {
  history.replaceState(null, "", address(changes));
}

/** Go to another view. */
export function go(to) {
  history.pushState(null, "", to);
  listeners.forEach((listener) => listener());
  window.scrollTo(0, 0);
}

export function onMove(listener) {
  listeners.push(listener);
  window.addEventListener("popstate", listener);
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[data-link]");
    if (!link || event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
    event.preventDefault();
    go(link.getAttribute("href"));
  });
}
