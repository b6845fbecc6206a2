// From a folder nothing can be fetched: the texts of the pages are in page_texts.js, section by section.
if (location.protocol === "file:") {
  const root = document.documentElement.dataset.content_root;
  window.fetch = (address) => Promise.resolve(new Response(address)); // the address stands for its page
  Search.htmlToText = (address, anchor) => {
    const page = address.slice(root.length, -DOCUMENTATION_OPTIONS.FILE_SUFFIX.length);
    const sections = PAGE_TEXTS[page] || [];
    const first = Math.max(sections.findIndex(([id]) => `#${id}` === anchor), 0);
    return sections.slice(first).map(([, text]) => text).join(" ");
  };
}
