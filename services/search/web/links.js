// Links to companies: inside the page, and out to their websites.

import { el } from "./dom.js";
import { addressOf, go, onlyAbout } from "./state.js";

export const facts = (company) => [company.country, company.industry].filter(Boolean).join(" · ");

export function companyLink(company, style, ...children) {
  const onclick = (event) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    goToCompany(company.id);
  };
  return el("a", { href: addressOf(onlyAbout(company.id)), class: style, onclick }, ...children);
}

export function companyChip(company) {
  const where = [company.domain, company.country].filter(Boolean).join(" · ");
  return companyLink(company, "chip", company.name, where ? el("small", {}, where) : null);
}

export function siteLink(domain, style) {
  return domain && el("a", { href: `https://${domain}`, class: style, target: "_blank", rel: "noopener noreferrer" }, domain);
}

export const goToCompany = (id) => go(onlyAbout(id)).then(toTop);

export function toTop() {
  window.scrollTo(0, 0);
  document.getElementById("question-title")?.focus({ preventScroll: true });
}
