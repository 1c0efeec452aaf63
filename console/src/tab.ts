// What this tab keeps until it is closed. Where the browser blocks the data of sites, each access to
// `sessionStorage` throws: then the page keeps it, until it is left.

const page = new Map<string, string>();

export function recall(name: string): string | null {
  try {
    return sessionStorage.getItem(name);
  } catch {
    return page.get(name) ?? null;
  }
}

export function keep(name: string, value: string): void {
  try {
    sessionStorage.setItem(name, value);
  } catch {
    page.set(name, value);
  }
}

export function drop(name: string): void {
  page.delete(name);
  try {
    sessionStorage.removeItem(name);
  } catch {
    // It was in the page alone.
  }
}
