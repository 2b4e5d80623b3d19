"""The documents refer to files, headings, settings and modules that exist."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from tests.house.source import DOCUMENTS, LIVING_DOCUMENTS, ROOT, committed_files, read

GLOSSARY = "docs/glossary.md"
EVENING_LINES = 1500
VAGUE = re.compile(r"\b(whoever|anew|somebody|everybody|so many|comes? to nothing|tells? of|told to)\b", re.IGNORECASE)
LINKS = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
DOTTED = re.compile(r"`(bookie|client|log|log_client|metadata|node|process|replica)\.([a-z][a-z0-9_]*)`")


@cache
def anchors_of(path: Path) -> frozenset[str]:
    """The fragments by which a page's headings are linked, as GitHub makes them."""
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    found: dict[str, int] = {}
    anchors = set()
    for heading in re.findall(r"^#{1,6} +(.+?)\s*$", text, re.MULTILINE):
        slug = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()).replace(" ", "-")
        anchors.add(f"{slug}-{found[slug]}" if slug in found else slug)
        found[slug] = found.get(slug, 0) + 1
    return frozenset(anchors)


@cache
def code_text() -> str:
    return "\n".join(read(path).text for path in committed_files() if path.endswith(".py"))


@cache
def code_words() -> frozenset[str]:
    return frozenset(re.findall(r"\w+", code_text()))


@cache
def is_in_code(name: str) -> bool:
    """Whether a dotted name is a text of the code, begins one, or is called."""
    return any(form in code_text() for form in (f'"{name}"', f'"{name}.', f"{name}("))


def glossary_rows() -> list[tuple[str, str, str]]:
    """Term, meaning and module of each row."""
    lines = (ROOT / GLOSSARY).read_text(encoding="utf-8").splitlines()
    rows = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines if line.startswith("| ")]
    assert all(len(row) == 3 for row in rows)
    return [(row[0], row[1], row[2]) for row in rows if row[0] != "term"]


@pytest.mark.parametrize("path", DOCUMENTS)
def test_links_lead_to_a_file(path: str) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    folder = (ROOT / path).parent
    links = [target for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text) if "://" not in target]
    missing = [target for target in links if not (folder / target).exists()]
    assert not missing, f"{path} links missing files"


@pytest.mark.parametrize("path", DOCUMENTS)
def test_links_to_headings_lead_to_one(path: str) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    missing = []
    for target in LINKS.findall(text):
        name, mark, anchor = target.partition("#")
        page = (ROOT / path).parent / name if name else ROOT / path
        if mark and "://" not in target and page.suffix == ".md" and page.exists() and anchor not in anchors_of(page):
            missing.append(target)
    assert not missing, f"{path} links missing headings"


@pytest.mark.parametrize("path", LIVING_DOCUMENTS)
def test_settings_and_traces_that_are_named_exist(path: str) -> None:
    reference = (ROOT / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")
    unknown = []
    for section, key in DOTTED.findall((ROOT / path).read_text(encoding="utf-8")):
        name = f"{section}.{key}"
        if f"\n### {name}\n" not in reference and not is_in_code(name):
            unknown.append(name)
    assert not unknown, f"{path} names neither settings nor names of the code"


@pytest.mark.parametrize("path", [path for path in LIVING_DOCUMENTS if not path.startswith("docs/reference/")])
def test_documents_name_the_subject_of_a_sentence(path: str) -> None:
    text = re.sub(r"^```.*?^```", "", (ROOT / path).read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"`[^`\n]*`", "", text)
    assert VAGUE.findall(text) == [], f"{path}: say which object does what"


def test_texts_of_the_code_name_settings_by_their_section() -> None:
    reference = (ROOT / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")
    keys = {section: set(re.findall(rf"^### {section}\.(\w+)$", reference, re.MULTILINE)) for section in ("log", "log_client")}
    assert len(keys["log"]) > 5
    assert len(keys["log_client"]) > 20
    named = set(re.findall(r"[\s`(]log\.(\w+)", code_text()))
    wrong = named & (keys["log_client"] - keys["log"])
    assert wrong == set(), "these belong to the section log_client"


def test_the_files_of_one_evening_are_short() -> None:
    section = (ROOT / "README.md").read_text(encoding="utf-8").split("### One evening", 1)[1].split("\n## ", 1)[0]
    files = re.findall(r"^\| `([\w./]+\.py)` \|", section, re.MULTILINE)
    assert len(files) >= 5
    assert sum(len((ROOT / path).read_text(encoding="utf-8").splitlines()) for path in files) < EVENING_LINES


def test_each_term_of_the_glossary_has_a_module_that_exists() -> None:
    rows = glossary_rows()
    assert len(rows) > 100
    for term, meaning, module in rows:
        named = re.findall(r"`([\w./-]+)`", module)
        assert named, f"{term} names no module"
        assert [one for one in named if not (ROOT / one).is_file()] == [], f"{term} names a missing module"
        assert meaning.endswith((".", "*(ours)*")), f"{term} is explained in sentences"
    terms = [term for term, _, _ in rows]
    assert sorted(set(terms)) == sorted(terms), "a term stands twice"


def misplaced(page: str) -> list[str]:
    """Objects in the second column of a table that none of the modules in the third column defines."""
    found = []
    for line in page.splitlines():
        cells = line.strip("|").split("|")
        if not re.match(r"\| \d+ \|", line) or len(cells) < 4:
            continue
        texts = [read(module).text for module in re.findall(r"`([\w/]+\.py)`", cells[2])]
        found += [
            name
            for name in re.findall(r"`(\w+)`", cells[1])
            if not any(re.search(rf"^class {name}\b", text, re.MULTILINE) for text in texts)
        ]
    return found


def test_the_append_path_names_the_module_of_each_object() -> None:
    page = (ROOT / "docs" / "append-path.md").read_text(encoding="utf-8")
    assert len(re.findall(r"^\| \d+ \|", page, re.MULTILINE)) > 15
    assert misplaced(page) == []
    drawn = set(re.findall(r"\[\(?(\w+)[^\]]*\]", page.partition("```mermaid")[2].partition("```")[0]))
    classes = set(re.findall(r"^class (\w+)", code_text(), re.MULTILINE))
    assert sorted(name for name in drawn if name[0].isupper() and name not in classes) == []


def test_an_object_in_another_module_is_reported() -> None:
    row = "| 1 | `Journal`, `GroupWriter` | `src/triplicate/bookie/journal/journal.py` | x |"
    assert misplaced(row) == ["GroupWriter"]


@pytest.mark.parametrize(
    "path", [path for path in DOCUMENTS if path.startswith(("docs/how-to/", "docs/append-path", "docs/architecture", "docs/simulation"))]
)
def test_names_in_the_walks_through_the_code_are_in_the_code(path: str) -> None:
    text = re.sub(r"^```.*?^```", "", (ROOT / path).read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    named = {part for name in re.findall(r"`([A-Za-z_]\w*(?:\.\w+)?)`", text) for part in name.split(".")}
    known = {Path(name).stem for name in committed_files()}
    assert sorted(named - code_words() - known) == [], f"{path} has names that the code has not"


def test_the_glossary_is_linked_from_where_readers_begin() -> None:
    for page in ("README.md", "docs/architecture.md"):
        assert "glossary.md" in (ROOT / page).read_text(encoding="utf-8"), f"{page} does not link the glossary"


@pytest.mark.parametrize("path", DOCUMENTS)
def test_every_row_of_a_table_has_the_columns_of_its_head(path: str) -> None:
    text = re.sub(r"^```.*?^```", "", (ROOT / path).read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    columns = 0
    for line in text.splitlines():
        cells = len(re.split(r"(?<!\\)\|", line.strip())) if line.startswith("|") else 0
        assert not columns or cells in (0, columns), f"{path}: {line[:80]}"
        columns = cells


def test_no_two_decisions_share_a_number() -> None:
    names = [path.rpartition("/")[2] for path in DOCUMENTS if re.match(r"docs/decisions/\d{4}-", path)]
    numbers = [name[:4] for name in names]
    assert len(set(numbers)) == len(numbers), names
    for name in names:
        title = (ROOT / "docs" / "decisions" / name).read_text(encoding="utf-8").splitlines()[0]
        assert title.startswith(f"# {int(name[:4])}. "), f"{name} begins with its number"


def test_shell_scripts_parse() -> None:
    for path in ("scripts/setup.sh", ".ci/run"):
        subprocess.run(["bash", "-n", str(ROOT / path)], check=True)
