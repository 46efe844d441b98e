# SPDX-License-Identifier: Apache-2.0
"""What MkDocs needs to show docs/ as a site (mkdocs.yml): pages of the list that are not there are left out and those it
lacks stand at its end, links that lead out of docs/ become the names of files in the source, and lists begin without a
blank line before them, as they do in the Markdown of most readers."""
import posixpath
import re
from pathlib import Path

LINK = re.compile(r"(?<!!)\[([^\]\[]+)\]\(([^)#\s:]+)(#[^)\s]*)?\)")


def there(entries, folder):
    """The list without pages that do not exist, and without headings that have none left."""
    out = []
    for entry in entries:
        (title, page), = entry.items()
        if isinstance(page, list):
            page = there(page, folder)
        elif not (folder / page).exists():
            continue
        if page:
            out.append({title: page})
    return out


def named(entries):
    """All pages of the list."""
    for entry in entries:
        (page,) = entry.values()
        yield from named(page) if isinstance(page, list) else [page]


def on_config(config):
    folder = Path(config["docs_dir"])
    nav = there(config["nav"], folder)
    pages = {path.relative_to(folder).as_posix() for path in folder.rglob("*.md")}
    more = sorted(pages - set(named(nav)))
    config["nav"] = nav + ([{"More": [{Path(page).stem: page} for page in more]}] if more else [])
    return config


def inside(text, page):
    """Links out of docs/ as the path in the source. `page` is the page's path in docs/."""
    def change(match):
        words, target = match[1], match[2]
        path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), target))
        if path.startswith("docs/"):
            return match[0]
        return f"{words} (`{path}`)" if words.strip("`") not in path else f"`{path}`"
    return LINK.sub(change, text)


def lists(text):
    """A blank line before a list that follows a line of text."""
    out, code = [], False
    for line in text.split("\n"):
        code ^= line.lstrip().startswith("```")
        begins = re.match(r"([-*]|\d+\.) ", line)
        if begins and not code and out and out[-1].strip() and not re.match(r"\s*([-*]|\d+\.) |\s+\S", out[-1]):
            out.append("")
        out.append(line)
    return "\n".join(out)


def on_page_markdown(markdown, page, **_):
    return lists(inside(markdown, page.file.src_uri))
