"""What `make site` adds to MkDocs: documents beside docs/, and links to files that are no pages."""

import re
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
BESIDE = ("ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "CODE_OF_CONDUCT.md")
"""Pages of the site that are beside docs/ and not in it."""
LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]*)\]\((?P<file>[^)\s#]+)(?P<anchor>#[^)\s]*)?\)")
ROW, CODE = re.compile(r"^\|.*$", re.MULTILINE), re.compile(r"`[^`]*`")
"""In a table GitHub wants `|` escaped in code too; Python-Markdown would show the backslash."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Fill the parts of the navigation that are lists of files."""
    nav: dict[str, list[Any]] = {title: entries for part in config.nav or [] for title, entries in part.items()}
    nav["Decisions"] += [f"decisions/{page.name}" for page in sorted((ROOT / "docs" / "decisions").glob("0*.md"))]
    nav["Project"] += [f"project/{name}" for name in BESIDE]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the documents beside docs/."""
    for name in BESIDE:
        files.append(File.generated(config, f"project/{name}", content=(ROOT / name).read_text()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links as the site needs them; they are written for a reader of the repository."""
    uri = page.file.src_uri
    here = "." if uri.startswith("project/") else str(PurePosixPath("docs", uri).parent)

    def replaced(link: re.Match[str]) -> str:
        target = normpath(f"{here}/{link['file']}")
        if ":" in link["file"] or not (ROOT / target).exists():
            return link[0]  # elsewhere; or nowhere, which MkDocs reports
        if target == "README.md":
            target = "docs/README.md"
        found = f"project/{target}" if target in BESIDE else target.removeprefix("docs/")
        if target not in BESIDE and not target.startswith("docs/"):
            return f"{link['text']} (`{target}`)"
        return f"[{link['text']}]({relpath(found, str(PurePosixPath(uri).parent))}{link['anchor'] or ''})"

    return ROW.sub(
        lambda row: CODE.sub(lambda code: code[0].replace("\\|", "|"), row[0]), LINK.sub(replaced, markdown)
    )
